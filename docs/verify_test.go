package docs

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gigafizz/coordinator"
)

func TestVerifyPageExplainsEveryFieldAndEvent(t *testing.T) {
	page, err := os.ReadFile("verify.md")
	if err != nil {
		t.Fatal(err)
	}
	of := fieldNames(reflect.TypeFor[coordinator.Report]())
	for name := range fieldNames(reflect.TypeFor[coordinator.VerifyReport]()) {
		if !of[name] && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("verify.md does not explain %q", name)
		}
	}
	for _, b := range []coordinator.Body{coordinator.VerifyPlanned{}, coordinator.ExtentBad{}, coordinator.RepairPlanned{}, coordinator.Repaired{}} {
		if !strings.Contains(string(page), "`"+b.Name()+"`") {
			t.Errorf("verify.md does not name the event %q", b.Name())
		}
	}
}
