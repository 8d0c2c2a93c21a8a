package main

import (
	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
)

// newRoot builds the command tree. The root itself is run, the default command, so flags alone are enough.
func newRoot(c *manners.Console) *cobra.Command {
	root := newRunCommand(c)
	root.Use = program + " [run] --n=COUNT --out=PATH"
	root.Long = rootLong
	root.Example = rootExample
	root.AddCommand(newRunCommand(c), newPlanCommand(c), newResumeCommand(c), newJobsCommand(c), newDiscardCommand(c), newVerifyCommand(c),
		newPeekCommand(c), newDigestCommand(c), newVersionCommand(c))
	return root
}

const rootLong = `coordinator writes one huge file whose every byte is known before it is written, from every core of this machine.
The content is FizzBuzz from 1 to n, or any rules like it, or incompressible bytes.

Every flag can also be set in the environment: --sync is GIGAFIZZ_SYNC. A flag wins over the environment.`

const rootExample = `  coordinator --n=1e9 --out=fizz.txt            write and publish a file of 7.9 GB
  coordinator --n=1e9 --out=- | consumer        an ordered stream
  coordinator --n=1e9 --out=null:               how fast are the bytes made?
  coordinator --layout=random:42 --size=8GiB --out=noise.bin
  coordinator resume fizz.txt                   go on with a run that was interrupted, failed or died
  coordinator plan --n=1e12 --out=/mnt/big/fizz.txt`
