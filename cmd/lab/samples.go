package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gigafizz/cmd/manners"
)

// samplesDir is where samples are kept that have no place of their own: the user's cache, or else where temporary files
// are.
func samplesDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "gigafizz", "lab")
}

// createSamples creates the file of samples. Each trial is in it once it is over.
func createSamples(path string, names []string) (*os.File, error) {
	if path != "" {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			return nil, manners.UsageError("--samples", "name a new file", "%s exists, and samples replace nothing", path)
		}
		if err != nil {
			return nil, manners.OpenFailure("create the samples", path, err)
		}
		return f, nil
	}
	pattern := time.Now().UTC().Format("20060102T150405Z") + "-" + strings.Join(names, "-") + "-*.jsonl"
	dir := samplesDir()
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		dir = os.TempDir()
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, manners.OpenFailure("create the samples in", dir, err)
	}
	return f, nil
}

// latestSamples is the newest file in samplesDir: names begin with the time.
func latestSamples() (string, error) {
	dir := samplesDir()
	found, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(found) == 0 {
		return "", manners.UsageError("report", program+" report FILE", "there are no samples in %s", dir)
	}
	return slices.Max(found), nil
}
