// Foreign checks what Affidavit signs and proves by Go's own packages for transparency logs,
// golang.org/x/mod/sumdb/note and tlog: nothing of it is ours but the reading of the input.
//
// It reads one JSON document from standard input and says "ok", or why not.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type record struct {
	Index int64
	Entry string
	Path  []string
}

type growth struct {
	Old_size int64
	Old_root string
	New_size int64
	New_root string
	Hashes   []string
}

type input struct {
	Vkeys   []string
	Note    string
	Records []record
	Growth  []growth
	Dir     string
	Entries bool
}

func fail(format string, words ...any) {
	fmt.Printf(format+"\n", words...)
	os.Exit(1)
}

func hash(text string) tlog.Hash {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != tlog.HashSize {
		fail("not a hash: %q", text)
	}
	return tlog.Hash(raw)
}

func hashes(texts []string) (found []tlog.Hash) {
	for _, text := range texts {
		found = append(found, hash(text))
	}
	return found
}

// open believes a note that every one of these keys signed.
func open(vkeys []string, data string) tlog.Tree {
	var verifiers []note.Verifier
	for _, vkey := range vkeys {
		verifier, err := note.NewVerifier(vkey)
		if err != nil {
			fail("key %s: %v", vkey, err)
		}
		verifiers = append(verifiers, verifier)
	}
	opened, err := note.Open([]byte(data), note.VerifierList(verifiers...))
	if err != nil {
		fail("note: %v", err)
	}
	if len(opened.Sigs) != len(vkeys) || len(opened.UnverifiedSigs) != 0 {
		fail("note: %d signatures", len(opened.Sigs))
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		fail("checkpoint: %q", opened.Text)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		fail("size: %v", err)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		fail("root: %q", lines[2])
	}
	return tlog.Tree{N: size, Hash: tlog.Hash(root)}
}

// folder reads tiles as tlog asks for them; its paths name the height, 8, first.
type folder string

func (dir folder) Height() int { return 8 }

func (dir folder) ReadTiles(tiles []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range tiles {
		path := "tile/" + strings.TrimPrefix(tile.Path(), "tile/8/")
		read, err := os.ReadFile(filepath.Join(string(dir), path))
		if err != nil {
			return nil, err
		}
		data = append(data, read)
	}
	return data, nil
}

func (dir folder) SaveTiles([]tlog.Tile, [][]byte) {}

// bundle is the entries of a file: two bytes of length, and so many bytes, repeated.
func bundle(dir string, number, width int64) (entries [][]byte) {
	path := tlog.Tile{H: 8, L: 0, N: number, W: int(width)}.Path()
	path = "tile/entries/" + strings.TrimPrefix(path, "tile/8/0/")
	data, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		fail("bundle: %v", err)
	}
	for len(data) >= 2 {
		size := int(data[0])<<8 | int(data[1])
		if len(data) < 2+size {
			fail("bundle %s ends inside an entry", path)
		}
		entries = append(entries, data[2:2+size])
		data = data[2+size:]
	}
	return entries
}

func checkFolder(tree tlog.Tree, dir string, withEntries bool) {
	reader := tlog.TileHashReader(tree, folder(dir))
	for index := int64(0); index < tree.N; index++ {
		proof, err := tlog.ProveRecord(tree.N, index, reader)
		if err != nil {
			fail("entry %d: %v", index, err)
		}
		leaves, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, index)})
		if err != nil {
			fail("entry %d: %v", index, err)
		}
		leaf := leaves[0]
		if withEntries {
			number := index / 256
			entries := bundle(dir, number, min(256, tree.N-number*256))
			leaf = tlog.RecordHash(entries[index%256])
		}
		if err := tlog.CheckRecord(proof, tree.N, tree.Hash, index, leaf); err != nil {
			fail("entry %d: %v", index, err)
		}
	}
}

func main() {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		fail("input: %v", err)
	}
	tree := open(given.Vkeys, given.Note)
	for _, one := range given.Records {
		leaf := tlog.RecordHash([]byte(one.Entry))
		if err := tlog.CheckRecord(hashes(one.Path), tree.N, tree.Hash, one.Index, leaf); err != nil {
			fail("record %d: %v", one.Index, err)
		}
	}
	for _, one := range given.Growth {
		err := tlog.CheckTree(
			hashes(one.Hashes), one.New_size, hash(one.New_root), one.Old_size, hash(one.Old_root))
		if err != nil {
			fail("growth %d to %d: %v", one.Old_size, one.New_size, err)
		}
	}
	if given.Dir != "" {
		checkFolder(tree, given.Dir, given.Entries)
	}
	fmt.Println("ok")
}
