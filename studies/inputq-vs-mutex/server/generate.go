package main

// The generated code is committed, so that a build needs Go alone. After a change of
// counter.proto, run `go generate` with protoc, protoc-gen-go 1.34.1 and protoc-gen-go-grpc 1.3.0
// on the PATH.
//go:generate protoc -I .. --go_out=counterpb --go_opt=paths=source_relative --go-grpc_out=counterpb --go-grpc_opt=paths=source_relative counter.proto
