//go:build unix && !linux

package pglocal

func memoryDir() string { return "" }
