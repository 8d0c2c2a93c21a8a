module gigafizz/deploy/tools/dev

go 1.26.8
