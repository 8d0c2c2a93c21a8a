package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
)

// digestReport is the checksums of a file that need not exist.
type digestReport struct {
	SchemaVersion int    `json:"schema_version"`
	FileBytes     int64  `json:"file_bytes"`
	CRC32C        string `json:"crc32c"`
	BLAKE3        string `json:"blake3"`
}

// digestSchema grows when a field of digestReport changes its meaning or goes away.
const digestSchema = 1

// newDigestCommand computes what other tools will say of the file.
func newDigestCommand(c *manners.Console) *cobra.Command {
	o := &struct {
		content
		telling
		threads quantity.Count
	}{}
	speed := manners.NewFlags("Speed")
	speed.VarP(&o.threads, "threads", "t", "`COUNT` of threads (default: one for each CPU)")
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitSpace, manners.ExitInterrupt, manners.ExitQuit, manners.ExitReaderGone, manners.ExitTerminated}}
	d.Groups = append(d.Groups, o.content.flags(), speed, o.reportFlags())
	cmd := &cobra.Command{
		Use:   "digest --n=COUNT",
		Short: "checksums of the whole file, without a file",
		Long:  "digest computes the CRC32C and the BLAKE3 (as b3sum prints it) of the whole file, in parallel and without any I/O.",
		Example: `  coordinator digest --n=1e9
  b3sum fizz.txt`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.Quiet = o.quiet
		if err := checkDelivery(&delivery{threads: o.threads}, cmd.Flags(), target{}); err != nil {
			return err
		}
		if o.threads == 0 {
			o.threads = quantity.Count(runtime.GOMAXPROCS(0))
		}
		l, err := checkContent(&o.content, cmd.Flags(), false)
		if err != nil {
			return err
		}
		results, err := openResults(cmd.Context(), &o.telling, c, ground{})
		if err != nil {
			return err
		}
		sums, err := coordinator.Digest(cmd.Context(), l, int(o.threads), nil)
		if err != nil {
			return errors.Join(err, results.close())
		}
		r := digestReport{SchemaVersion: digestSchema, FileBytes: l.Size(), CRC32C: fmt.Sprintf("%08x", sums.CRC32C), BLAKE3: sums.BLAKE3Hex()}
		return results.deliver(c, r, fmt.Sprintf("bytes  %d\ncrc32c %s\nblake3 %s\n", r.FileBytes, r.CRC32C, r.BLAKE3))
	}
	return d.Add(cmd)
}
