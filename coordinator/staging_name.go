package coordinator

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The files of a job stand beside its output, hidden, and carry its name and the job's id:
//
//	.NAME.<32 hex>.part         the staging file
//	.NAME.<32 hex>.journal.E    the journal of epoch E
//	.NAME.<32 hex>.probeI       thrown away within milliseconds
//
// NAME is the output's name, cut where the file system's limit asks; the full name is in the journal's header.
const (
	jobIDDigits  = 32
	nameMaxBytes = 255 // where the file system does not say
	// The longest thing that stands around NAME: dots, id, and a journal's suffix with any epoch.
	nameAroundMax = len(".") + len(".") + jobIDDigits + len(".journal.") + len("18446744073709551615")
)

// fileRole is what a job's file is for.
type fileRole int

const (
	roleStaging fileRole = iota
	roleJournal
	roleProbe
)

// jobFile is a job's file, by its name.
type jobFile struct {
	name  string
	role  fileRole
	jobID string
	epoch uint64 // of a journal
}

// stem is the part of an output's name that its job's files carry.
type stem struct {
	text string
	// ambiguous: other outputs may have the same stem, so a file belongs to this one only when a header says so.
	ambiguous bool
}

// stemOf cuts an output's name to what leaves room for the rest, at the edge of a UTF-8 sequence.
func stemOf(output string, nameMax int) stem {
	room := max(nameMax-nameAroundMax, 1)
	cut := output
	if len(cut) > room {
		cut = cut[:room]
		for i := 0; i < utf8.UTFMax-1 && len(cut) > 1; i++ {
			if r, size := utf8.DecodeLastRuneInString(cut); r != utf8.RuneError || size != 1 {
				break
			}
			cut = cut[:len(cut)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(cut); r == utf8.RuneError && size == 1 {
			cut = output[:room] // not UTF-8 at all: any byte is as good
		}
	}
	return stem{text: cut, ambiguous: len(cut) > room-utf8.UTFMax}
}

func (s stem) staging(jobID string) string { return fmt.Sprintf(".%s.%s.part", s.text, jobID) }

func (s stem) journal(jobID string, epoch uint64) string {
	return fmt.Sprintf(".%s.%s.journal.%d", s.text, jobID, epoch)
}

func (s stem) probe(id string, i int) string { return fmt.Sprintf(".%s.%s.probe%d", s.text, id, i) }

// parse recognises the name of a job's file; it matches exactly or not at all.
func (s stem) parse(name string) (jobFile, bool) {
	rest, ok := strings.CutPrefix(name, "."+s.text+".")
	if !ok || len(rest) < jobIDDigits || !isJobID(rest[:jobIDDigits]) {
		return jobFile{}, false
	}
	f := jobFile{name: name, jobID: rest[:jobIDDigits]}
	suffix := rest[jobIDDigits:]
	if suffix == ".part" {
		f.role = roleStaging
		return f, true
	}
	if digits, ok := strings.CutPrefix(suffix, ".journal."); ok {
		f.role = roleJournal
		f.epoch, ok = canonicalNumber(digits)
		return f, ok && f.epoch > 0
	}
	if digits, ok := strings.CutPrefix(suffix, ".probe"); ok {
		f.role = roleProbe
		_, ok = canonicalNumber(digits)
		return f, ok
	}
	return jobFile{}, false
}

// IsJobFile says whether a name is one that a file of a job has, whatever output it is of: nothing else should be written
// under it.
func IsJobFile(name string) bool { return len(stemsOf([]string{name})) > 0 }

func isJobID(s string) bool {
	return len(s) == jobIDDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// canonicalNumber parses decimal digits that are written the one way in which this program writes them.
func canonicalNumber(digits string) (uint64, bool) {
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == digits
}
