//go:build !race

package layout_test

const raceEnabled = false
