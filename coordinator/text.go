package coordinator

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is text as it may be shown to a person: whatever a terminal could take for a command, or a reader for
// another line or order of letters, is written as Go writes it in a string: control characters, line ends, formatting
// characters of Unicode, and bytes that are no UTF-8 (CWE-150). Most texts stay as they are.
func Printable(text string) string {
	var b strings.Builder
	rest := text
	for len(rest) > 0 {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(rest[0])|0x100, 16)[1:])
		case unicode.IsGraphic(r):
			b.WriteString(rest[:size])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		rest = rest[size:]
	}
	return b.String()
}

// ShellWord is a word as a POSIX shell takes it, for commands that are suggested: plain where nothing in it means
// anything to the shell, else in single quotes. One with control characters is written as bash, zsh and ksh read it.
func ShellWord(word string) string {
	switch {
	case Printable(word) != word:
		return "$'" + Printable(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(word)) + "'"
	case word == "" || strings.ContainsFunc(word, isShells):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// isShells tells whether a shell may see something in a character.
func isShells(r rune) bool {
	return r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,:@%=", r)
}
