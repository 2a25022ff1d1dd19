package encoder

import (
	"sync"
	"sync/atomic"
)

// parallel calls f for each task below tasks, spread over up to workers
// goroutines, the caller's among them, and returns when all are done. No two
// calls with the same worker number overlap.
func parallel(workers, tasks int, f func(worker, task int)) {
	workers = min(workers, tasks)
	if workers <= 1 {
		for task := range tasks {
			f(0, task)
		}
		return
	}
	var next atomic.Int64
	work := func(worker int) {
		for {
			task := int(next.Add(1)) - 1
			if task >= tasks {
				return
			}
			f(worker, task)
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < workers; worker++ {
		others.Go(func() { work(worker) })
	}
	work(0)
	others.Wait()
}
