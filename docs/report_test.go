package docs

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gigafizz/coordinator"
)

func TestReportPageExplainsEveryField(t *testing.T) {
	page, err := os.ReadFile("report.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range fieldNames(reflect.TypeFor[coordinator.Report]()) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("report.md does not explain %q", name)
		}
	}
}

func TestReportPageNamesEveryEvent(t *testing.T) {
	page, err := os.ReadFile("report.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []coordinator.Body{
		coordinator.JobPlanned{},
		coordinator.WorkerReady{},
		coordinator.PhaseBegan{},
		coordinator.Progress{},
		coordinator.ExtentWritten{},
		coordinator.ExtentFailed{},
		coordinator.BatchDurable{},
		coordinator.FlushFailed{},
		coordinator.Verified{},
		coordinator.Resumed{},
		coordinator.Revoked{},
		coordinator.Kept{},
		coordinator.Published{},
		coordinator.Warning{},
		coordinator.JobEnded{},
	} {
		if !strings.Contains(string(page), "`"+b.Name()+"`") {
			t.Errorf("report.md does not name the event %q", b.Name())
		}
	}
}

// fieldNames are the JSON names of a type's fields, and of those of the types within.
func fieldNames(of reflect.Type) map[string]bool {
	names := map[string]bool{}
	switch of.Kind() {
	case reflect.Struct:
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" { // in no report
				continue
			}
			names[name] = true
			for inner := range fieldNames(f.Type) {
				names[inner] = true
			}
		}
	case reflect.Slice, reflect.Pointer:
		return fieldNames(of.Elem())
	}
	return names
}
