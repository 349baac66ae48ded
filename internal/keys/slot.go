// The hash slots of Redis Cluster.

package keys

import "strings"

// Slots is the number of hash slots of a Redis Cluster.
const Slots = 16384

// Slot returns the hash slot of key by the rule of the Redis Cluster specification: the CRC16
// of the key's hash tag if it has one, of the whole key otherwise. The tag is the text between
// the first "{" and the next "}", unless that text is empty.
func Slot(key string) int {
	return int(crc16(hashed(key)) % Slots)
}

// hashed returns the part of key that decides its slot.
func hashed(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// crc16 is CRC-16/XMODEM (polynomial 0x1021), the one that Redis Cluster uses.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
