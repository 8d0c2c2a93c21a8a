package worker

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

func TestNamesThatAreNotUTF8AreNamesToo(t *testing.T) {
	r := startRig(t, nil)
	l := compiled(t, fizz(100_000))
	j := jobFor(l, pb.Sink_SINK_PWRITE)
	j.Target.Name = []byte("d\xfe/f\xff.txt")
	path := filepath.Join(r.dir, string(j.Target.Name))
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, l.Size()), 0o600); err != nil {
		t.Fatal(err)
	}
	r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	wantFile(t, path, l)
	f, err := r.worker.roots["out"].openThrough(string(j.Target.Name), os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: l.Size()}))
	if f := wantCode(t, err, codes.FailedPrecondition); f.Errno != "ENOENT" || f.Path != "out/d\uFFFD/f\uFFFD.txt" {
		t.Errorf("a missing one: %v", f)
	}
}
