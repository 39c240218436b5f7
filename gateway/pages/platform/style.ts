/**
 * The stylesheet of the hosted pages, and the colours of a tenant. The content security policy allows no inline
 * styles, so the colours are a separate stylesheet.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { FONT_FACES } from './fonts.js'
import { NO_CONTEXT } from '../../response/replies.js'
import { sharedBody } from '../../response/shared-body.js'
import { ownRoute, problem, type Rendered, type Route } from '../../route.js'

const FOLDER = new URL('../../../../gateway/pages/templates/platform/', import.meta.url)
const sheet = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8')

/** Colours of monograms. White has a contrast of at least 4.5:1 on each. */
export const MONOGRAM_COLORS = [
  '#3347d6',
  '#6b3fd4',
  '#9333a8',
  '#b02a72',
  '#b5303d',
  '#a8480f',
  '#80600a',
  '#47700f',
  '#147540',
  '#0c7370',
  '#0d6f9c',
  '#495873',
] as const

/** The class of the monogram of a tenant: always the same of its id. */
export function monogramClass(id: string): string {
  const sum = [...id].reduce((total, char) => (total * 31 + char.charCodeAt(0)) % 65_521, 7)
  return `hue-${sum % MONOGRAM_COLORS.length}`
}

const hues = MONOGRAM_COLORS.map((color, index) => `.hue-${index} { --hue: ${color}; }`)

/** Without comments and needless spaces. Strings of the sheets contain neither. */
function compact(css: string): string {
  return css
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([{};]) ?/g, '$1')
}

const STYLE = compact([FONT_FACES, sheet('style.css'), sheet('pages.css'), ...hues].join('\n'))
const { body: BODY } = sharedBody(STYLE)
const DIGEST = createHash('sha256').update(STYLE).digest('hex').slice(0, 16)

/** The path contains a digest of the content, so that the stylesheet can be cached forever. */
export const STYLE_PATH = `/auth/style/${DIGEST}`
export const BRAND_PATH = '/auth/brand'

const IMMUTABLE = 'public, max-age=31536000, immutable'
const unknown = problem(404, 'not-found', { detail: 'There is no such stylesheet.' })
const docs = [{ status: 200, contentType: 'text/css', schema: null }, ...unknown.docs]

const css = (body: string | Uint8Array): Rendered => ({
  form: 'body',
  status: 200,
  contentType: 'text/css; charset=utf-8',
  body,
  cacheControl: IMMUTABLE,
})

const Style = z.object({ digest: z.string().max(64) })
const Brand = z.object({ color: z.string().max(64) })

const shared = {
  method: 'GET',
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'anonymous' },
  responses: docs,
} as const

const style = ownRoute({
  ...shared,
  path: '/auth/style/{digest}',
  operationId: 'readStyle',
  summary: 'The stylesheet of the hosted pages',
  params: Style,
  answer: ({ params }) =>
    (params as z.infer<typeof Style>).digest === DIGEST
      ? css(BODY)
      : unknown.render(null, NO_CONTEXT),
})

const brand = ownRoute({
  ...shared,
  path: '/auth/brand/{color}',
  operationId: 'readBrand',
  summary: 'The colours of a tenant for the hosted pages',
  params: Brand,
  answer: ({ params }) => {
    const { color } = params as z.infer<typeof Brand>
    return /^[0-9a-f]{6}$/.test(color) ? css(brandStyle(color)) : unknown.render(null, NO_CONTEXT)
  },
})

export const styleRoutes: readonly Route[] = [style, brand]

type Rgb = readonly [number, number, number]
const WHITE: Rgb = [255, 255, 255]
const BLACK: Rgb = [11, 16, 32]
/** The backgrounds with the lowest contrast to links: `--ground` in light, `--raised` in dark schemes. */
const LIGHT_BACKGROUND: Rgb = [245, 246, 248]
const DARK_BACKGROUND: Rgb = [28, 32, 41]
/** WCAG 2.2, 1.4.3. */
const TEXT_CONTRAST = 4.5

/**
 * The brand colour for light and dark schemes. If its contrast to the background is too low, it is moved towards
 * black or white until it is sufficient. Text on it is black or white, whichever has the higher contrast.
 */
export function brandStyle(hex: string): string {
  const color = [0, 2, 4].map((offset) =>
    Number.parseInt(hex.slice(offset, offset + 2), 16),
  ) as unknown as Rgb
  const light = readable(color, LIGHT_BACKGROUND, [0, 0, 0])
  const dark = readable(color, DARK_BACKGROUND, WHITE)
  const rule = (shade: Rgb) =>
    `:root{--brand:${hexOf(shade)};--link:${hexOf(shade)};--brand-ink:${hexOf(inkOn(shade))}}`
  return `${rule(light)}\n@media (prefers-color-scheme: dark){${rule(dark)}}\n`
}

function inkOn(color: Rgb): Rgb {
  return contrast(color, WHITE) >= contrast(color, BLACK) ? WHITE : BLACK
}

/** Moves the colour towards `end` in steps of 5 percent until its contrast to the background is sufficient. */
function readable(color: Rgb, background: Rgb, end: Rgb): Rgb {
  for (let step = 0; step <= 20; step += 1) {
    const part = step / 20
    const mixed = color.map((value, index) => Math.round(value + (end[index]! - value) * part))
    if (contrast(mixed as unknown as Rgb, background) >= TEXT_CONTRAST)
      return mixed as unknown as Rgb
  }
  return end
}

/** WCAG 2.2, contrast ratio. */
export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].toSorted((x, y) => y - x) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

function luminance(color: Rgb): number {
  const [r, g, b] = color.map((value) => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function hexOf(color: Rgb): string {
  return `#${color.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}
