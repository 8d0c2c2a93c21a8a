package limits

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"gigafizz/cmd/lab/experiment"
)

// The blocks that the product's sinks write: a limit that writes others would be another one.
const (
	pwriteBlockBytes = 1 << 20
	directBlockBytes = 4 << 20
	readBlockBytes   = 1 << 20
)

// openAccepted compares whole processes up to the moment at which the kernel has all bytes.
func openAccepted(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	return openFile(s, []string{"--sync=none", "--sink=pwrite", "--verify=none"}, []Yardstick{{Work: WorkWrite, BlockBytes: pwriteBlockBytes}})
}

// openDurable compares whole processes until everything is on the disk: the command as it is without any flag.
func openDurable(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	return openFile(s, nil, durableWays())
}

// openDirect is openDurable with direct I/O asked for.
func openDirect(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	return openFile(s, []string{"--sink=direct"}, durableWays())
}

// durableWays are the constant writers whose bytes are on the disk when they end.
func durableWays() []Yardstick {
	return []Yardstick{
		{Work: WorkWrite, BlockBytes: directBlockBytes, Sync: true, Direct: true},
		{Work: WorkWrite, BlockBytes: directBlockBytes, Sync: true},
	}
}

func openFile(s experiment.Setting, flags []string, limits []Yardstick) (*experiment.Field, error) {
	if runtime.GOOS != "linux" {
		return nil, experiment.Unavailable("the constant writer needs fallocate(2) and O_DIRECT of Linux")
	}
	l, err := compile(fizzBuzz, s.N)
	if err != nil {
		return nil, err
	}
	if err := fits(s, l.Size()); err != nil {
		return nil, err
	}
	path := filepath.Join(s.Dir, "trial")
	ours, err := coordinator(s, append([]string{fmt.Sprintf("--n=%d", s.N), "--out=" + path, fmt.Sprintf("--threads=%d", s.Threads)}, flags...)...)
	if err != nil {
		return nil, err
	}
	gone := func() error { return remove(path) }
	f := &experiment.Field{Subject: ours.whole(l.Size(), gone), WarmBytes: l.Size(), Close: gone}
	for _, y := range limits {
		y.Path, y.Bytes, y.Threads = path, l.Size(), s.Threads
		f.Limits = append(f.Limits, yardstick(s, y).whole(l.Size(), gone))
	}
	return f, nil
}

// fits says where a file would not leave a tenth of what is free.
func fits(s experiment.Setting, bytes int64) error {
	if s.FreeBytes >= 0 && bytes > s.FreeBytes/10*9 {
		return experiment.Unavailable("a file of %d bytes is too much for the %d that are free there: choose a smaller --n, or another --dir", bytes, s.FreeBytes)
	}
	return nil
}

// remove removes a file that may not be there.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// openVerify makes a file, which is in the page cache then, and stays there.
func openVerify(ctx context.Context, s experiment.Setting) (*experiment.Field, error) {
	l, err := compile(fizzBuzz, s.N)
	if err != nil {
		return nil, err
	}
	if err := fits(s, l.Size()); err != nil {
		return nil, err
	}
	path, n := filepath.Join(s.Dir, "verified"), fmt.Sprintf("--n=%d", s.N)
	write, err := coordinator(s, n, "--out="+path, "--sync=none", "--sink=pwrite", "--verify=none")
	if err != nil {
		return nil, err
	}
	ours, err := coordinator(s, "verify", path, n, "--threads=1", "--cached")
	if err != nil {
		return nil, err
	}
	f := &experiment.Field{
		Subject: ours.whole(l.Size(), nil),
		Limits:  []experiment.Arm{yardstick(s, Yardstick{Work: WorkRead, Path: path, BlockBytes: readBlockBytes}).whole(l.Size(), nil)},
		Close:   func() error { return remove(path) },
	}
	if _, _, err := write.run(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("write the file to verify: %w", err), f.Close())
	}
	return f, nil
}
