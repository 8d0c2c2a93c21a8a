package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// target is what --out names. Exactly one of the fields that follow name is set.
type target struct {
	name     string           // as the user wrote it
	file     bool             // a regular file, to be staged and published
	sink     coordinator.Sink // SinkNull or SinkMemory
	standard bool             // the ordered stream, to standard output
	device   fs.FileMode      // the ordered stream, to a FIFO or character device; its type bits
}

// stream tells whether the target takes the bytes in order.
func (t target) stream() bool { return t.standard || t.device != 0 }

// title is the target's name in messages, on one line whatever is in it.
func (t target) title() string { return title(t.name) }

// named is the target as it is written on the command line; null: is no file named null.
func (t target) named() string {
	if t.standard {
		return t.title()
	}
	return coordinator.Printable(t.name)
}

func title(out string) string {
	if out == "-" {
		return "standard output"
	}
	return coordinator.Printable(strings.TrimSuffix(out, ":"))
}

// resolveTarget looks at what stands under the name of --out. It opens nothing and changes nothing.
//
// A FIFO or a character device takes the ordered stream and is never replaced, also when the name is a symbolic link to
// one, because /dev/stdout, /dev/stderr and /dev/fd/N are such links on Linux. A link to anything else that exists is
// refused: publishing would replace the link and leave the file behind it as it was, which is hardly what was meant.
func resolveTarget(out string) (target, error) {
	t := target{name: out}
	switch out {
	case "-":
		t.standard = true
		return t, nil
	case "null:":
		t.sink = coordinator.SinkNull
		return t, nil
	case "memory:":
		t.sink = coordinator.SinkMemory
		return t, nil
	}
	info, err := os.Lstat(out)
	link := err == nil && info.Mode().Type() == fs.ModeSymlink
	if link {
		info, err = os.Stat(out)
		if errors.Is(err, fs.ErrNotExist) { // a link to nothing is an existing name, which the coordinator refuses or replaces
			info, err = os.Lstat(out)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.file = true
		return t, checkDirectory(out)
	}
	if err != nil {
		return t, manners.OpenFailure("look at", out, err)
	}
	return t.classify(info, link)
}

// classify decides by the type of what exists under the name, behind links.
func (t target) classify(info fs.FileInfo, link bool) (target, error) {
	refuse := func(hint, text string) (target, error) {
		return t, &coordinator.Failure{Kind: coordinator.KindRefused, Op: "open", Path: t.name, Hint: hint, Err: errors.New(text)}
	}
	switch kind := info.Mode().Type(); {
	case kind&fs.ModeCharDevice != 0, kind == fs.ModeNamedPipe:
		t.device = kind
		return t, nil
	case info.IsDir():
		return refuse("--out="+coordinator.ShellWord(strings.TrimSuffix(t.name, "/")+"/fizz.txt"), "it is a directory")
	case kind&fs.ModeDevice != 0:
		return refuse("name a file on a file system", "it is a block device, which gigafizz does not write to")
	case kind == fs.ModeSocket:
		return refuse("name a file, a FIFO or -", "it is a socket")
	case link && kind == 0:
		real, err := filepath.EvalSymlinks(t.name)
		if err != nil {
			return refuse("name the file itself", "it is a symbolic link to a file that exists")
		}
		real = coordinator.ShellWord(real)
		if ours, err := os.Stdout.Stat(); err == nil && os.SameFile(info, ours) {
			real = "- for standard output, which is that file"
		}
		return refuse("--out="+real, "it is a symbolic link to a file that exists")
	}
	t.file = true
	return t, nil
}

// checkDirectory tells of a missing directory before anything starts.
func checkDirectory(out string) error {
	dir := coordinator.DirectoryOf(out)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &coordinator.Failure{Op: "open", Path: out, Hint: makeDirectory(out, dir), Errno: manners.ErrnoName(err), Err: errors.New("there is no directory " + dir)}
	case err != nil:
		return manners.OpenFailure("open", out, err)
	case !info.IsDir():
		return &coordinator.Failure{Op: "open", Path: out, Hint: "name a file in a directory", Err: errors.New(dir + " is not a directory")}
	}
	return nil
}

// makeDirectory is the command that makes the output's directory. A shell expands ~ at the beginning of a word only, so
// that of --out=~/x arrives as it is written.
func makeDirectory(out, dir string) string {
	if rest, ok := strings.CutPrefix(out, "~/"); ok {
		return `--out="$HOME"/` + coordinator.ShellWord(rest) + `, because a shell expands ~ at the beginning of a word only`
	}
	return "mkdir -p " + coordinator.ShellWord(dir)
}

// sameAs tells whether the target is the very file that f is.
func (t target) sameAs(f io.Writer) bool {
	file, ok := f.(*os.File)
	if !ok || t.device == 0 {
		return false
	}
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(t.name)
	return err == nil && os.SameFile(ours, theirs) && t.name != os.DevNull
}
