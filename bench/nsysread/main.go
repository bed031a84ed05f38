// Command nsysread reads an Nsight Systems export and writes nothing: what the
// reader alone takes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"tracelake/nsight"
)

func main() {
	library := flag.Bool("library", false, "read SQLite with the library alone")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "nsysread: name one export")
		os.Exit(2)
	}
	res, err := nsight.Read(context.Background(), flag.Arg(0), nsight.Options{Library: *library})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.GPU.Len(), "GPU events,", res.Launches.Len(), "calls")
}
