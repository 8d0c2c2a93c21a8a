// The Go vulnerability database at one day, read by govulncheck without a network. It is data: nothing imports it,
// so `go mod tidy` must not run here.
module gigafizz/deploy/tools/vulndb

go 1.26.0

require golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018
