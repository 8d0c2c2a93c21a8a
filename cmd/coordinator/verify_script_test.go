package main

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// harm KIND FILE ARG... changes a file as storage would:
//
//	flip FILE OFFSET             one bit
//	zeros FILE OFFSET LENGTH
//	swap FILE OFFSET OFFSET LENGTH
//	insert FILE OFFSET TEXT      and cut the end, so that the size stays
//	size FILE BYTES              cut, or grown by a hole
//	add FILE TEXT
func harm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: harm KIND FILE ARG...")
	}
	name := ts.MkAbs(args[1])
	at := func(i int) int {
		n, err := strconv.Atoi(args[i])
		ts.Check(err)
		return n
	}
	if args[0] == "size" {
		ts.Check(os.Truncate(name, int64(at(2))))
		return
	}
	b, err := os.ReadFile(name)
	ts.Check(err)
	switch args[0] {
	case "flip":
		b[at(2)] ^= 1
	case "zeros":
		clear(b[at(2):][:at(3)])
	case "swap":
		first := bytes.Clone(b[at(2):][:at(4)])
		copy(b[at(2):][:at(4)], b[at(3):])
		copy(b[at(3):], first)
	case "insert":
		b = slices.Insert(b, at(2), []byte(args[3])...)[:len(b)]
	case "add":
		b = append(b, args[2]...)
	default:
		ts.Fatalf("no such harm: %s", args[0])
	}
	ts.Check(os.WriteFile(name, b, 0o666))
}
