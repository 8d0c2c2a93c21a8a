package experiment

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageText string

// Page is the report as one HTML file that needs nothing else: pictures, tables, environment and the raw samples are in
// it.
func (r Report) Page() ([]byte, error) {
	page, err := template.New("page").Funcs(template.FuncMap{"rate": rateText, "interval": intervalText, "json": indented}).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("the page's template: %w", err)
	}
	data := pageData{Report: r}
	for _, e := range r.Experiments {
		light, err := e.Chart(logOf(r), Light)
		if err != nil {
			return nil, err
		}
		dark, err := e.Chart(logOf(r), Dark)
		if err != nil {
			return nil, err
		}
		data.Charts = append(data.Charts, pageChart{EntryReport: e, Light: template.HTML(light), Dark: template.HTML(dark)}) // our own, of names that the library escapes
	}
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return b.Bytes(), nil
}

// Picture is the report as one SVG file: the chart of its first experiment.
func (r Report) Picture() ([]byte, error) {
	if len(r.Experiments) == 0 {
		return EntryReport{Entry: Entry{Name: "no experiment"}}.Chart(logOf(r), Light)
	}
	return r.Experiments[0].Chart(logOf(r), Light)
}

type pageData struct {
	Report
	Charts []pageChart
}

type pageChart struct {
	EntryReport
	Light, Dark template.HTML
}

// logOf is the log that a report carries.
func logOf(r Report) Log {
	var l Log
	for _, line := range r.Log {
		l.add(line)
	}
	return l
}

func intervalText(i *Interval) string {
	if i == nil {
		return "-"
	}
	return i.text()
}

func indented(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}
