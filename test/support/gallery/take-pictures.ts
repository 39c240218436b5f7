/**
 * Writes docs/pictures/*.png: the hosted pages and the main pages of the console of a running service, in light and dark
 * schemes. One walk takes both pictures of each page.
 * `node dist/test/support/gallery/take-pictures.js [name...]`, after a page was changed.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openChromium, type Window } from '../pages/chromium.js'
import { CONSOLE_PICTURES, walkConsole } from './console.js'
import { PICTURE_FOLDER, type PictureName, PICTURES, SCHEMES, WIDE } from './pictures.js'
import { openStage, setScene } from './stage.js'
import { walkGallery } from './walk.js'
import { program } from '../service/program.js'
import { smallPng } from '../identity/small-png.js'

const BYTES_MAX = 128_000
const [CARD, TWO_COLUMNS] = [
  { width: 620, height: 560 },
  { width: 1080, height: 720 },
]
/** The part of a long console page that a picture shows. */
const CONSOLE_HEIGHT_MAX = 1_200
const known = [...PICTURES.keys(), ...CONSOLE_PICTURES.keys()]
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !known.includes(name))
if (unknown.length > 0) throw new Error(`there is no picture ${unknown.join(', ')}`)
const isWanted = (name: string) => wanted.length === 0 || wanted.includes(name)
const found = program('chromium')
if (found === undefined) throw new Error('chromium is not installed')
const chromium: string = found

/** Takes the page of the window in both schemes. */
async function take({ page }: Window, name: string, height?: number): Promise<void> {
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme })
    const file = join(PICTURE_FOLDER, `${name}-${colorScheme}.png`)
    const clip =
      height === undefined ? {} : { clip: { x: 0, y: 0, width: TWO_COLUMNS.width, height } }
    // Without the caret, which blinks.
    const whole = await page.screenshot({ fullPage: true, caret: 'hide', ...clip })
    const picture = smallPng(whole)
    if (picture.length > BYTES_MAX) throw new Error(`${file} has ${picture.length} bytes`)
    writeFileSync(file, picture)
  }
  await page.emulateMedia({ colorScheme: 'light' })
}

async function hostedPages(): Promise<void> {
  if (![...PICTURES.keys()].some(isWanted)) return
  const stage = await openStage()
  const window = await openChromium(chromium, { colorScheme: 'light' })
  const seen = new Set<string>()
  try {
    const scene = await setScene(stage)
    await window.page.setViewportSize(CARD)
    await walkGallery(scene, window, async (name: PictureName) => {
      seen.add(name)
      if (!isWanted(name)) return
      if (WIDE.has(name)) await window.page.setViewportSize(TWO_COLUMNS)
      await take(window, name)
      await window.page.setViewportSize(CARD)
    })
    await scene.shop.api.close()
  } finally {
    await window.close()
    await stage.end()
  }
  const missed = [...PICTURES.keys()].filter((name) => !seen.has(name))
  if (missed.length > 0) throw new Error(`not met on the way: ${missed.join(', ')}`)
}

async function consolePages(): Promise<void> {
  if (![...CONSOLE_PICTURES.keys()].some(isWanted)) return
  const window = await openChromium(chromium, { colorScheme: 'light' })
  try {
    await window.page.setViewportSize(TWO_COLUMNS)
    await walkConsole(window, async (name) => {
      if (!isWanted(name)) return
      const height = await window.page.evaluate('document.documentElement.scrollHeight')
      await take(window, name, Math.min(Number(height), CONSOLE_HEIGHT_MAX))
    })
  } finally {
    await window.close()
  }
}

mkdirSync(PICTURE_FOLDER, { recursive: true })
await Promise.all([hostedPages(), consolePages()])
for (const file of readdirSync(PICTURE_FOLDER)) {
  if (!known.includes(file.replace(/-(light|dark)\.png$/, ''))) rmSync(join(PICTURE_FOLDER, file))
}
