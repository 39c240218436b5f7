import test from 'ava'
import * as fc from 'fast-check'
import { brandStyle, contrast } from '../../../gateway/pages/platform/style.js'

/** `--paper` and `--raised` of the stylesheet, light and dark. */
const PAPERS = [
  [
    [255, 255, 255],
    [247, 248, 250],
  ],
  [
    [26, 29, 35],
    [33, 37, 45],
  ],
] as const
const rgb = (hex: string) =>
  [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as readonly [
    number,
    number,
    number,
  ]

test('whatever colour a tenant has, words in it and on it can be read in both schemes', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffff }), (value) => {
      const style = brandStyle(value.toString(16).padStart(6, '0'))
      const rules = [...style.matchAll(/--brand:(#\w{6});.*?--brand-ink:(#\w{6})/g)]
      return (
        rules.length === 2 &&
        rules.every(([, brand = '', ink = ''], index) => {
          const shade = rgb(brand)
          return [...PAPERS[index]!, rgb(ink)].every((one) => contrast(shade, one) >= 4.5)
        })
      )
    }),
    { numRuns: 2_000 },
  )
  t.pass()
})
