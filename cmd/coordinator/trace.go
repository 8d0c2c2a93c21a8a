package main

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"reflect"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// traceBuffer holds what the file has not taken yet, so that an event seldom waits for the disk.
const traceBuffer = 1 << 20

// trace writes events as JSON lines. Times are seconds since the run began, or lengths in seconds; offsets and lengths
// are bytes. The first error stops the writing and is told by flush.
type trace struct {
	name string
	out  *bufio.Writer
	err  error
}

func newTrace(name string, w io.Writer) *trace {
	return &trace{name: name, out: bufio.NewWriterSize(w, traceBuffer)}
}

// observe is a coordinator.Observer.
func (t *trace) observe(e coordinator.Event) {
	if t.err != nil {
		return
	}
	body := traceBody(e.Body)
	maps.DeleteFunc(body, func(_ string, v any) bool {
		return reflect.ValueOf(v).Kind() == reflect.String && reflect.ValueOf(v).Len() == 0
	})
	text, err := json.Marshal(traceLine{At: e.At.Seconds(), Event: e.Body.Name(), Body: body})
	if err == nil {
		_, err = t.out.Write(append(text, '\n'))
	}
	t.err = err
}

// flush writes what is still held and tells the first error.
func (t *trace) flush() error {
	if err := t.out.Flush(); t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return manners.WriteFailure(t.name, t.err)
	}
	return nil
}

// traceLine is one event.
type traceLine struct {
	At    float64        `json:"at_seconds"`
	Event string         `json:"event"`
	Body  map[string]any `json:"body"`
}

// traceBody names the fields of an event as the trace's readers know them.
func traceBody(body coordinator.Body) map[string]any {
	switch b := body.(type) {
	case coordinator.JobPlanned:
		return map[string]any{
			"job": b.JobID, "target": b.Target, "size_bytes": b.SizeBytes, "sink": b.Sink, "sink_reason": b.SinkReason, "weaker_here": b.Weaker, "grain_bytes": b.GrainBytes,
			"extent_bytes": b.ExtentBytes, "extents": b.Extents, "sync": b.Sync, "verify": b.Verify, "lease_seconds": b.Lease.Seconds(), "file_system": b.FileSystem,
		}
	case coordinator.WorkerReady:
		return map[string]any{"worker": b.Worker, "host": b.Host, "pid": b.PID, "threads": b.Threads, "sink": b.Sink}
	case coordinator.PhaseBegan:
		return map[string]any{"phase": b.Phase}
	case coordinator.Allocated:
		return map[string]any{"bytes": b.Bytes, "allocate_seconds": b.Allocate.Seconds()}
	case coordinator.Progress:
		return map[string]any{
			"worker": b.Worker, "generated_bytes": b.Generated, "accepted_bytes": b.Accepted,
			"fill_thread_seconds": b.Fill.Seconds(), "put_thread_seconds": b.Put.Seconds(), "prefault_thread_seconds": b.Prefault.Seconds(),
		}
	case coordinator.ExtentWritten:
		return map[string]any{"worker": b.Worker, "extent": traceExtent(b.Extent), "attempt": b.Attempt}
	case coordinator.ExtentFailed:
		return map[string]any{"worker": b.Worker, "extent": traceExtent(b.Extent), "attempt": b.Attempt, "error": text(b.Err)}
	case coordinator.BatchDurable:
		return map[string]any{"extents": traceExtents(b.Extents), "bytes": b.Bytes, "flush_seconds": b.Flush.Seconds()}
	case coordinator.FlushFailed:
		return map[string]any{"extents": traceExtents(b.Extents), "error": text(b.Err)}
	case coordinator.Resumed:
		return map[string]any{"epoch": b.Epoch, "durable_bytes": b.DurableBytes}
	case coordinator.Revoked:
		return map[string]any{"extents": traceExtents(b.Extents), "bytes": b.Bytes}
	case coordinator.Kept:
		return map[string]any{"path": b.Path, "published": b.Published, "durable_bytes": b.DurableBytes}
	case coordinator.Verified:
		return map[string]any{"bytes": b.Bytes, "read_path": b.ReadPath}
	case coordinator.VerifyPlanned:
		return map[string]any{
			"job": b.JobID, "file": b.File, "size_bytes": b.SizeBytes, "file_bytes": b.FileBytes, "inferred": b.Inferred,
			"range": traceExtent(b.Range), "read_path": b.ReadPath, "threads": b.Threads,
		}
	case coordinator.RepairPlanned:
		return map[string]any{
			"extents": b.Extents, "bytes": b.Bytes, "grain_bytes": b.GrainBytes, "cut_bytes": b.CutBytes, "added_bytes": b.AddedBytes,
		}
	case coordinator.Repaired:
		return map[string]any{
			"verified_bytes": b.VerifiedBytes, "read_path": b.ReadPath, "remaining_extents": b.RemainingExtents, "remaining_bytes": b.RemainingBytes,
		}
	case coordinator.ExtentBad:
		return map[string]any{"bad_extent": b.Bad}
	case coordinator.Published:
		return map[string]any{"path": b.Path, "name_durable": b.NameDurable}
	case coordinator.Warning:
		return map[string]any{"text": b.Text}
	case coordinator.JobEnded:
		return map[string]any{"error": text(b.Err)}
	}
	return map[string]any{}
}

// tracedExtent is an extent as every document of this program has it.
type tracedExtent struct {
	OffsetBytes int64 `json:"offset_bytes"`
	LengthBytes int64 `json:"length_bytes"`
}

func traceExtent(e layout.Extent) tracedExtent {
	return tracedExtent{OffsetBytes: e.Off, LengthBytes: e.Len}
}

func traceExtents(es []layout.Extent) []tracedExtent {
	traced := make([]tracedExtent, 0, len(es))
	for _, e := range es {
		traced = append(traced, traceExtent(e))
	}
	return traced
}

// text is an error's message, or nothing.
func text(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}
