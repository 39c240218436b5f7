import test from 'ava'
import * as fc from 'fast-check'
import sharp from 'sharp'
import { imageKindOf } from '../../../actors/platform/image-header.js'

const made = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp({ create: { width, height, channels, background: { r: 1, g: 2, b: 3, alpha: 0.5 } } })

for (const [width, height] of [
  [1, 1],
  [17, 300],
  [1024, 3],
  [4097, 2],
] as const)
  test(`the size of an image of ${width} by ${height}`, async (t) => {
    const size = { width, height }
    t.deepEqual(imageKindOf(await made(width, height).png().toBuffer()), { kind: 'png', ...size })
    for (const progressive of [false, true]) {
      const jpeg = await made(width, height)
        .jpeg({ progressive })
        .withExif({ IFD0: { Copyright: 'x' } })
        .toBuffer()
      t.deepEqual(imageKindOf(jpeg), { kind: 'jpeg', ...size })
    }
    for (const webp of [
      made(width, height).webp(),
      made(width, height).webp({ lossless: true }),
      made(width, height, 4).webp(),
    ])
      t.deepEqual(imageKindOf(await webp.toBuffer()), { kind: 'webp', ...size })
  })

test('cut and arbitrary bytes have no size and no error', async (t) => {
  const jpeg = await made(9, 9).jpeg().toBuffer()
  for (let length = 0; length < 30; length += 1) t.is(imageKindOf(jpeg.subarray(0, length)), null)
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom('', 'ffd8', '89504e470d0a1a0a'),
      (bytes, start) => {
        imageKindOf(Buffer.concat([Buffer.from(start, 'hex'), bytes]))
      },
    ),
    { seed: 7_645, numRuns: 300 },
  )
  t.is(
    imageKindOf(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')),
    null,
  )
})
