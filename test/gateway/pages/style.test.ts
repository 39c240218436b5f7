import { readFileSync } from 'node:fs'
import test from 'ava'
import * as fc from 'fast-check'
import { brandStyle, contrast, MONOGRAM_COLORS } from '../../../gateway/pages/platform/style.js'
import { runs } from '../../support/runs.js'

function rgb(hex: string): readonly [number, number, number] {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as readonly [
    number,
    number,
    number,
  ]
}

/** `--paper`, `--raised` and `--ground` of the stylesheet, light and dark. */
const PAPERS = (() => {
  const sheet = readFileSync('gateway/pages/templates/platform/style.css', 'utf8')
  const all = (name: string) =>
    [...sheet.matchAll(new RegExp(`--${name}: (#[0-9a-f]{6});`, 'g'))].map(([, hex]) => hex!)
  const names = ['paper', 'raised', 'ground'].map(all)
  return [0, 1].map((scheme) => names.map((hexes) => rgb(hexes[scheme]!)))
})()

test('whatever colour a tenant has, words in it and on it can be read in both schemes', (t) => {
  t.notThrows(() =>
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
      { numRuns: runs(2_000) },
    ),
  )
})

test('the letter of a monogram can be read on each of its colours', (t) => {
  for (const color of MONOGRAM_COLORS) {
    const ratio = contrast(rgb(color), [255, 255, 255])
    t.true(ratio >= 4.5, `${color}: ${ratio}`)
  }
})
