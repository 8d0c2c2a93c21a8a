package main

import (
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// progressMode is how progress is shown.
type progressMode string

const (
	progressAuto  progressMode = "auto"  // a bar on a terminal, else plain
	progressBar   progressMode = "bar"   // a bar, where there is a terminal to draw it on
	progressPlain progressMode = "plain" // one line for each interval
	progressNone  progressMode = "none"
)

// plainInterval is the time between plain lines; a run that is shorter shows none.
const plainInterval = 5 * time.Second

// progress shows a run while it goes on.
type progress struct {
	console *manners.Console
	began   time.Time

	mu    sync.Mutex
	tally tally // guarded by mu

	bars *mpb.Progress // nil without a bar
	bar  *mpb.Bar
	over chan struct{} // closed to end the lines; nil without lines
	done chan struct{}
}

// startProgress begins to show, in the way that the mode and the terminal allow. stop must follow.
func startProgress(c *manners.Console, mode progressMode) *progress {
	p := &progress{console: c, began: time.Now()}
	switch choose(mode, manners.IsTerminal(c.Stderr), c.Quiet) {
	case progressBar:
		p.startBar()
	case progressPlain:
		p.over, p.done = make(chan struct{}), make(chan struct{})
		go p.lines()
	}
	return p
}

// choose settles what auto means.
func choose(mode progressMode, terminal bool, quiet bool) progressMode {
	switch {
	case quiet || mode == progressNone:
		return progressNone
	case terminal && mode != progressPlain:
		return progressBar
	default:
		return progressPlain
	}
}

// observe is a coordinator.Observer.
func (p *progress) observe(e coordinator.Event) {
	p.mu.Lock()
	p.tally.apply(e)
	done, size := p.tally.done(), p.tally.size
	if p.tally.endless {
		size = 0
	}
	p.mu.Unlock()
	if p.bar != nil {
		p.bar.SetTotal(size, false)
		p.bar.SetCurrent(done)
	}
}

// status is the present state in one line.
func (p *progress) status() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.line(time.Since(p.began))
}

// withoutEnd makes it show how far the run is and not of what.
func (p *progress) withoutEnd() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.endless = true
}

// statusWithin is status in at most width columns.
func (p *progress) statusWithin(width int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.fit(time.Since(p.began), width)
}

// lines writes a line for each interval until stop.
func (p *progress) lines() {
	defer close(p.done)
	tick := time.NewTicker(plainInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-tick.C:
			p.console.Say("%s", p.status())
		}
	}
}

// startBar draws a bar at the foot of the terminal; what is said meanwhile scrolls above it. It has no colours, so
// NO_COLOR is kept without asking.
func (p *progress) startBar() {
	p.bars = mpb.New(mpb.WithOutput(p.console.Stderr), mpb.WithWidth(40))
	p.bar = p.bars.AddBar(0, mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return " " + p.statusWithin(s.AvailableWidth-1) })))
	p.console.Show(p.bars)
}

// stop ends the showing, removes the bar, and waits for both.
func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
		p.console.Show(nil)
	}
	if p.over != nil {
		close(p.over)
		<-p.done
	}
}
