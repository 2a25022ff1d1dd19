// Command encoder times the embedded encoder for bench/encoder/run.sh. It
// prints one line for each shape: its name and the milliseconds of each round.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	"github.com/askback/askback/internal/encoder"
)

func main() {
	rounds := flag.Int("rounds", 20, "rounds of the shape 1x256; longer shapes get fewer, shorter ones more")
	flag.Parse()
	m, err := encoder.MiniLM()
	if err != nil {
		log.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for _, shape := range [][2]int{{1, 20}, {32, 120}, {1, 256}} {
		seqs := make([]encoder.Sequence, shape[0])
		for i := range seqs {
			for range shape[1] {
				seqs[i].IDs = append(seqs[i].IDs, 1000+r.Int32N(28000))
			}
		}
		forward := func() {
			if _, err := m.Forward(context.Background(), seqs, encoder.Options{}); err != nil {
				log.Fatal(err)
			}
		}
		forward()
		fmt.Printf("%dx%d", shape[0], shape[1])
		for range max(3, *rounds*256/(shape[0]*shape[1])) {
			start := time.Now()
			forward()
			fmt.Printf(" %.3f", float64(time.Since(start).Microseconds())/1000)
		}
		fmt.Println()
	}
}
