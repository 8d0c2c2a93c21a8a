package layout

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Lines that other rules made.
const (
	linesMin     = 3       // fewer whole lines are judged by the record that belongs there
	linesLooked  = 1 << 10 // lines that are judged, of all that there are
	wordsPerLine = 2       // lines without a number repeat: there are at least this many for each text
)

// otherLines says whether damage is lines as a layout of other parameters would have them.
func (c *Classifier) otherLines(first, end int) bool {
	text := c.got[first:end]
	if c.off+int64(first) > 0 {
		text = text[bytes.IndexByte(text, '\n')+1:] // a line may have begun before
	}
	lines := bytes.SplitN(text, []byte{'\n'}, linesLooked+1)
	lines = lines[:len(lines)-1] // it may have gone on behind
	if len(lines) < linesMin {
		return c.otherLine(first, end)
	}
	for _, line := range lines {
		if !IsText(line) {
			return false
		}
	}
	return counting(lines)
}

// counting says whether lines are those of some rules: numbers that go up by one with every line, among texts; or
// without any number, texts that repeat.
func counting(lines [][]byte) bool {
	numbers, base := 0, int64(0)
	texts := make(map[string]bool)
	for i, line := range lines {
		n, ok := number(line)
		if !ok {
			texts[string(line)] = true
			continue
		}
		if numbers > 0 && n-int64(i) != base {
			return false
		}
		numbers, base = numbers+1, n-int64(i)
	}
	if numbers == 0 {
		return len(texts)*wordsPerLine <= len(lines)
	}
	return numbers > 1 || len(texts)*wordsPerLine <= len(lines)
}

// otherLine says whether the line around damage is a number where words belong, or words where a number belongs.
func (c *Classifier) otherLine(first, end int) bool {
	record, within, err := c.layout.Locate(c.off + int64(first))
	if err != nil {
		return false
	}
	from := c.at + first - int(within)
	if from < 0 {
		return false
	}
	length := bytes.IndexByte(c.view[from:], '\n')
	if length < 1 || from+length < c.at+end-1 {
		return false
	}
	line := c.view[from : from+length]
	if n, ok := number(line); ok {
		return n == record
	}
	digits := strconv.AppendInt(nil, record, 10)
	want := make([]byte, min(int64(len(digits)), c.layout.Size()-(c.off+int64(first)-within)))
	c.layout.Fill(want, c.off+int64(first)-within)
	return bytes.Equal(want, digits) && IsText(line) && !bytes.ContainsAny(line, "0123456789")
}

// IsText says whether b is valid UTF-8 without control characters, as the line of a record is.
func IsText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, unicode.IsControl)
}
