package limits

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"gigafizz/cmd/lab/experiment"
)

// How a consumer takes what is in a pipe.
type taking string

const (
	byRead   taking = "read"   // into a buffer of 1 MiB
	bySplice taking = "splice" // to /dev/null, never looking at it
)

// consumption is what happens at the other end of a pipe.
type consumption struct {
	taking taking
	bytes  int64         // all of them, to the end; 0 for a stream without one
	time   time.Duration // after which a stream without an end is left
}

// pipeBlocks are the blocks that the constant writer tries: ours writes 256 KiB at a time.
var pipeBlocks = [...]int{128 << 10, 256 << 10}

func openPipe(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	l, err := compile(fizzBuzz, s.N)
	if err != nil {
		return nil, err
	}
	ours, err := coordinator(s, fmt.Sprintf("--n=%d", s.N), "--out=-", fmt.Sprintf("--threads=%d", s.Threads))
	if err != nil {
		return nil, err
	}
	c := consumption{taking: byRead, bytes: l.Size()}
	f := &experiment.Field{Subject: consumed(ours, c), Note: "the consumer is not bound to a CPU"}
	for _, block := range pipeBlocks {
		f.Limits = append(f.Limits, consumed(yardstick(s, Yardstick{Work: WorkPipe, Bytes: l.Size(), BlockBytes: block}), c))
	}
	return f, nil
}

func openYes(ctx context.Context, s experiment.Setting) (*experiment.Field, error) {
	ours, err := coordinator(s, "--rules=1=y", "--n=inf", "--out=-", fmt.Sprintf("--threads=%d", s.Threads))
	if err != nil {
		return nil, err
	}
	c := consumption{taking: bySplice, time: s.TrialTime}
	f := &experiment.Field{
		Subject: consumed(ours, c),
		Limits:  []experiment.Arm{consumed(yardstick(s, Yardstick{Work: WorkSplice, BlockBytes: 128 << 10}), c)},
	}
	if path, version := newestYes(ctx); path != "" {
		f.Limits = append(f.Limits, consumed(program{name: "GNU yes " + version, path: path}, c))
	} else {
		f.Note = "no GNU yes of 9.11 or later, which splices, is on the PATH"
	}
	return f, nil
}

// newestYes finds a GNU yes that splices, which it does since version 9.11 of the coreutils.
func newestYes(ctx context.Context) (path, version string) {
	path, err := exec.LookPath("yes")
	if err != nil {
		return "", ""
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", ""
	}
	version, ok := splicingVersion(string(said))
	if !ok {
		return "", ""
	}
	return path, version
}

// splicingVersion reads what yes --version says, and whether that version splices.
func splicingVersion(said string) (version string, ok bool) {
	first, _, _ := strings.Cut(said, "\n")
	_, version, found := strings.Cut(first, "(GNU coreutils) ")
	major, minor, _ := strings.Cut(version, ".")
	minor, _, _ = strings.Cut(minor, ".")
	m, majorErr := strconv.Atoi(major)
	n, minorErr := strconv.Atoi(minor)
	return version, found && majorErr == nil && minorErr == nil && (m > 9 || m == 9 && n >= 11)
}
