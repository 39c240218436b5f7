/** The kind and size of an image, from its first bytes and without decoding it. */

export type ImageKind = 'png' | 'jpeg' | 'webp'
type ImageHeader = {
  readonly kind: ImageKind
  readonly width: number
  readonly height: number
}

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

/** Null for anything but PNG, JPEG or WebP with a size. */
export function imageKindOf(bytes: Buffer): ImageHeader | null {
  const header = pngOf(bytes) ?? jpegOf(bytes) ?? webpOf(bytes)
  return header !== null && header.width > 0 && header.height > 0 ? header : null
}

/** PNG (third edition) section 11.2.1: IHDR is the first chunk. */
function pngOf(bytes: Buffer): ImageHeader | null {
  if (bytes.length < 33 || !bytes.subarray(0, 8).equals(PNG)) return null
  if (bytes.toString('latin1', 12, 16) !== 'IHDR') return null
  return { kind: 'png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** ITU-T T.81 annex B: segments up to the start of a frame. */
function jpegOf(bytes: Buffer): ImageHeader | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null
  for (let at = 2; at + 9 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return null
    const marker = bytes[at + 1]!
    // Tables of Huffman codes (C4) and arithmetic codes (CC), and an extension (C8), are no frames.
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame)
      return { kind: 'jpeg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    if (marker < 0xc0 || marker === 0xff) return null
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return null
}

/** RFC 9649 section 2. */
function webpOf(bytes: Buffer): ImageHeader | null {
  if (bytes.length < 30) return null
  const text = (from: number, to: number) => bytes.toString('latin1', from, to)
  if (text(0, 4) !== 'RIFF' || text(8, 12) !== 'WEBP') return null
  switch (text(12, 16)) {
    case 'VP8X':
      return {
        kind: 'webp',
        width: 1 + bytes.readUIntLE(24, 3),
        height: 1 + bytes.readUIntLE(27, 3),
      }
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return { kind: 'webp', width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) }
    }
    case 'VP8 ':
      return {
        kind: 'webp',
        width: bytes.readUInt16LE(26) & 0x3fff,
        height: bytes.readUInt16LE(28) & 0x3fff,
      }
    default:
      return null
  }
}
