package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"gigafizz/layout"
)

// subject is the file that is verified.
type subject struct {
	path      string   // without any link, as short as it was named: longer ones may be longer than a path may be
	linksTo   string   // the same, if the name that was given is a symbolic link
	file      *os.File // to be read by the coordinator itself, through the page cache
	facts     fileFacts
	sizeBytes int64 // when it was examined
	grown     int64 // by how much it is longer when everything was looked at

	fileSystem FileSystem // that holds it, as far as looking tells
}

// examine finds the file. The rules of staging files do not hold here, since nothing is done to it.
func (v *verification) examine(ctx context.Context) error {
	var err error
	v.subject, err = findSubject(v.job.Path)
	f, ok := errors.AsType[*Failure](err)
	switch {
	case !ok:
	case errors.Is(err, fs.ErrNotExist):
		f.Hint = unfinishedAt(ctx, v.job.Path)
	case v.job.Repair && errors.Is(err, fs.ErrPermission):
		return refused("repair", f.Path, "it cannot be read: "+f.Err.Error(), f.Hint)
	}
	return err
}

// unfinishedAt says how to go on with an unfinished job of an output, if there is one.
func unfinishedAt(ctx context.Context, path string) string {
	found, err := Jobs(ctx, DirectoryOf(path))
	if err != nil {
		return ""
	}
	for _, u := range found {
		if u.Output != filepath.Base(path) {
			continue
		}
		switch u.State {
		case StateLive:
			return "wait: its job is not complete, and a coordinator has it"
		case StateResumable, StatePublished:
			return "its job is not complete: " + ResumeCommand(path) + " goes on with it"
		}
	}
	return ""
}

func findSubject(name string) (s subject, err error) {
	if name == "" {
		return s, unusable("the file has no name")
	}
	failed := func(err error) (subject, error) {
		f := &Failure{Kind: KindRuntime, Op: "open", Path: name, Errno: errnoName(err), Err: bare(err)}
		switch {
		case errors.Is(err, fs.ErrPermission):
			f.Hint = "get the right to read it; who has it: ls -ld " + ShellWord(DirectoryOf(name)) + " " + commandPath(name)
		case errors.Is(err, syscall.ENAMETOOLONG):
			f.Hint = "go to its directory, and name the file from there"
		}
		return subject{}, f
	}
	if s.path, err = filepath.EvalSymlinks(name); err != nil {
		return failed(err)
	}
	named, err := os.Lstat(name)
	if err != nil {
		return failed(err)
	}
	if named.Mode().Type() == fs.ModeSymlink {
		if s.linksTo, err = filepath.Abs(s.path); err != nil {
			return failed(err)
		}
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return failed(err)
	}
	if what := otherThanFile(info.Mode()); what != "" {
		return subject{}, &Failure{
			Kind: KindRefused, Op: "open", Path: name, Err: errors.New("it is " + what), Hint: "name a regular file",
		}
	}
	if s.file, err = os.Open(s.path); err != nil {
		return failed(err)
	}
	if err := s.measure(name); err != nil {
		return subject{}, joined(err, s.close())
	}
	s.fileSystem = holderOf(s.path)
	return s, nil
}

// measure finds out how large the file is. What has no size and can be read is no data at rest: files of /proc are made while
// they are read.
func (s *subject) measure(name string) error {
	var err error
	if s.facts, err = statFile(s.file); err != nil {
		return fileFailure("stat", name, err)
	}
	if s.sizeBytes = s.facts.size; s.sizeBytes > 0 {
		return nil
	}
	switch n, err := s.file.ReadAt(make([]byte, lookBytes), 0); {
	case n > 0:
		return refused("open", name, "it has no size, and can be read all the same: it is made while it is read, as in /proc", "name a regular file")
	case !errors.Is(err, io.EOF):
		return &Failure{Kind: KindRuntime, Op: "read", Path: name, Errno: errnoName(err), Err: bare(err), Hint: "name a regular file"}
	}
	return nil
}

// close lets the file go.
func (s *subject) close() error {
	if s.file == nil {
		return nil
	}
	err := closeFile(s.file)
	s.file = nil
	return err
}

// endBytes is its size when everything was looked at.
func (s *subject) endBytes() int64 { return s.sizeBytes + s.grown }

// change says what became of the file since it was examined; nothing if nothing did. Times that somebody has set back do not
// hide it where the system keeps one of its own. A bare error is no change: nothing is known.
func (s *subject) change() (what string, err error) {
	facts, err := statFile(s.file)
	if err != nil {
		return "", err
	}
	opened, err := s.file.Stat()
	if err != nil {
		return "", bare(err)
	}
	named, err := os.Stat(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", bare(err)
	}
	switch {
	case named == nil || !os.SameFile(opened, named): // nil: it is gone
		return "it was replaced, renamed or removed", nil
	case facts.size != s.facts.size:
		s.grown = facts.size - s.facts.size
		return fmt.Sprintf("it has %d bytes now, and had %d", facts.size, s.facts.size), nil
	case !facts.unchanged(s.facts):
		return "somebody wrote to it, or changed its times, its mode or its names", nil
	}
	return "", nil
}

// holderOf says what file system holds a file. A directory that cannot be looked at is no reason not to verify.
func holderOf(path string) FileSystem {
	d, err := openDirectory(filepath.Dir(path))
	if err != nil {
		return FileSystem{}
	}
	defer func() { _ = d.close() }() // only looked at
	held, err := describeFileSystem(d)
	if err != nil {
		return FileSystem{}
	}
	return held.FileSystem
}

// otherThanFile says what something is that is no regular file.
func otherThanFile(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "no regular file"
	}
}

// sizeVerdict is what the size of a file says of it.
type sizeVerdict string

const (
	sizeRight     sizeVerdict = "right"
	sizeTruncated sizeVerdict = "truncated"
	sizeTooLong   sizeVerdict = "too long"
)

func (v *verification) sizeVerdict() sizeVerdict {
	switch have, want := v.subject.endBytes(), v.layout.Size(); {
	case have < want:
		return sizeTruncated
	case have > want:
		return sizeTooLong
	}
	return sizeRight
}

// sizeCounts says whether a wrong size is a fault: a range that does not go to the end does not ask for the size.
func (v *verification) sizeCounts() bool { return v.whole.End() == v.layout.Size() }

// sizeText says what is wrong with the size; empty if nothing is.
func (v *verification) sizeText() string {
	have, want := v.subject.endBytes(), v.layout.Size()
	switch {
	case v.job.Infer == InferN && have != want:
		return fmt.Sprintf("truncated or too long: %d bytes are no whole number of records; the nearest n below is %d, of %d bytes, with %d behind it",
			have, v.layoutN(), want, have-want)
	case have < want:
		return fmt.Sprintf("truncated: %d bytes instead of %d, from offset %d on %d are missing%s", have, want, have, want-have, v.otherN())
	case have > want:
		return fmt.Sprintf("too long: %d bytes instead of %d, from offset %d on %d are too many%s", have, want, want, have-want, v.otherN())
	}
	return ""
}

func (v *verification) layoutN() int64 {
	n, _ := v.layout.Records()
	return n
}

// otherN says which n the file's size belongs to, if it belongs to one.
func (v *verification) otherN() string {
	if n, ok := exactN(v.run.job.Spec.Rules, v.subject.endBytes()); ok && v.run.job.Spec.Kind == layout.KindRules {
		return fmt.Sprintf("; that is the size of n=%d", n)
	}
	return ""
}

// guessSeed says of incompressible bytes which layout they may be of. Of seeds only the default can be tried.
func (v *verification) guessSeed(head []byte) string {
	plain := layout.Spec{Kind: layout.KindRandom, Bytes: int64(len(head))}
	l, err := layout.New(plain)
	if err != nil {
		return ""
	}
	ours := make([]byte, len(head))
	l.Fill(ours, 0)
	if bytes.Equal(ours, head) {
		return "its beginning is that of --layout=random:0"
	}
	if v.run.job.Spec.Kind == layout.KindRandom {
		return "it may have another seed: --layout=random:SEED"
	}
	return "its beginning is no text: it may be --layout=random:SEED"
}

// incompressible says whether bytes look random: of each value there are some, and of none many.
func incompressible(b []byte) bool {
	if len(b) < 16<<10 {
		return false
	}
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	mean := len(b) / len(counts)
	return slices.Min(counts[:]) > mean/3 && slices.Max(counts[:]) < 2*mean
}

// exactN is the n whose file has exactly this size, if there is one.
func exactN(rules []layout.Rule, sizeBytes int64) (int64, bool) {
	n, err := layout.LargestN(rules, sizeBytes)
	if err != nil {
		return 0, false
	}
	l, err := layout.New(layout.Spec{Kind: layout.KindRules, N: n, Rules: rules})
	return n, err == nil && l.Size() == sizeBytes
}

// headBytes is how much of the file's beginning a guess is made of.
const headBytes = 64 << 10

// head is the file's beginning; nothing where it cannot be read.
func (v *verification) head() []byte {
	head := make([]byte, min(headBytes, v.subject.sizeBytes))
	if n, _ := v.subject.file.ReadAt(head, 0); n < len(head) {
		return nil
	}
	return head
}

// guess says which parameters the beginning of the file looks like, if those are not the ones that were given.
func (v *verification) guess() string {
	head := v.head()
	rules, ok := layout.GuessRules(head)
	spec := v.run.job.Spec
	if !ok && incompressible(head) {
		return v.guessSeed(head)
	}
	if !ok || spec.Kind == layout.KindRules && layout.FormatRules(rules) == layout.FormatRules(spec.Rules) {
		return ""
	}
	text := "its beginning looks like --rules=" + layout.FormatRules(rules)
	if n, ok := exactN(rules, v.subject.sizeBytes); ok {
		text += fmt.Sprintf(", and its size like --n=%d of them", n)
	}
	return text
}
