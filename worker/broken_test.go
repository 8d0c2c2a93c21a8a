package worker

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
	"gigafizz/worker/sinktest"
)

func TestAPanicIsAnErrorOfItsRequestAndNotTheEndOfTheWorker(t *testing.T) {
	breaks := func() { panic("two and two are five") }
	for op, code := range map[sinktest.Op]codes.Code{sinktest.OpPut: codes.Internal, sinktest.OpSync: codes.OK, sinktest.OpClose: codes.Internal} {
		t.Run(op.String(), func(t *testing.T) {
			r := startRig(t, breaking(sinktest.Rule{Op: op, Nth: 1, Hook: breaks}))
			j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
			m := writeRequest(j, layout.Extent{Len: l.Size()})
			got, err := r.write(m)
			if op == sinktest.OpPut {
				checkBroken(t, wantCode(t, err, code))
				got = r.mustWrite(m)
			}
			v := r.mustFlush(j, got.handle.HandleId)
			if op == sinktest.OpSync {
				checkBroken(t, v.Failure)
				if len(v.Durable) > 0 {
					t.Errorf("durable after a flush that broke: %v", v)
				}
				r.mustWrite(m)
				v = r.mustFlush(j, got.handle.HandleId)
			}
			if len(v.Durable) != 1 || len(v.Failed) > 0 {
				t.Errorf("verdict %v", v)
			}
			wantFile(t, filepath.Join(r.dir, "part"), l)
			if _, err = r.release(j); op == sinktest.OpClose {
				checkBroken(t, wantCode(t, err, code))
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPanicWhileATargetIsOpenedKeepsNobodyWaiting(t *testing.T) {
	first := true
	r := startRig(t, func(w *Worker) {
		w.openSink = func(o opening) (Sink, error) {
			if first {
				first = false
				_ = o.File.Close()
				var none *handle
				none.holders++
			}
			return openSink(o)
		}
	})
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	_, err := r.write(m)
	f := wantCode(t, err, codes.Internal)
	if !strings.Contains(f.Message, "internal error at broken_test.go:") || !strings.Contains(f.Message, "nil pointer") {
		t.Errorf("message %q", f.Message)
	}
	r.mustWrite(m)
}

func checkBroken(t *testing.T, f *pb.Failure) {
	t.Helper()
	if want := "two and two are five"; !strings.Contains(f.GetMessage(), want) || !strings.Contains(f.GetMessage(), "internal error at broken_test.go:") || len(f.GetMessage()) > 200 {
		t.Errorf("message %q, want place and cause and nothing else", f.GetMessage())
	}
}
