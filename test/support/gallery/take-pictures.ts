/**
 * Writes docs/pictures/*.png: the hosted pages of a running service, in light and dark schemes.
 * `node dist/test/support/gallery/take-pictures.js [name...]`, after a page was changed.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openChromium } from '../pages/chromium.js'
import { PICTURE_FOLDER, PICTURES, SCHEMES, WIDE } from './pictures.js'
import { openStage, setScene } from './stage.js'
import { walkGallery } from './walk.js'
import { program } from '../service/program.js'
import { smallPng } from '../identity/small-png.js'

const BYTES_MAX = 128_000
const [CARD, TWO_COLUMNS] = [
  { width: 620, height: 560 },
  { width: 1080, height: 720 },
]
const wanted = process.argv.slice(2)
const path = program('chromium')
if (path === undefined) throw new Error('chromium is not installed')

const stage = await openStage()
mkdirSync(PICTURE_FOLDER, { recursive: true })
const seen = new Set<string>()
try {
  for (const colorScheme of SCHEMES) {
    const scene = await setScene(stage)
    const window = await openChromium(path, { colorScheme })
    await window.page.setViewportSize(CARD)
    await walkGallery(scene, window, async (name) => {
      seen.add(name)
      if (wanted.length > 0 && !wanted.includes(name)) return
      const file = join(PICTURE_FOLDER, `${name}-${colorScheme}.png`)
      if (WIDE.has(name)) await window.page.setViewportSize(TWO_COLUMNS)
      // Without the caret, which blinks.
      const picture = smallPng(await window.page.screenshot({ fullPage: true, caret: 'hide' }))
      if (picture.length > BYTES_MAX) throw new Error(`${file} has ${picture.length} bytes`)
      writeFileSync(file, picture)
      await window.page.setViewportSize(CARD)
    })
    await window.close()
    await scene.shop.api.close()
  }
} finally {
  await stage.end()
}
const missed = [...PICTURES.keys()].filter((name) => !seen.has(name))
if (missed.length > 0) throw new Error(`not met on the way: ${missed.join(', ')}`)
for (const file of readdirSync(PICTURE_FOLDER)) {
  if (!PICTURES.has(file.replace(/-(light|dark)\.png$/, ''))) rmSync(join(PICTURE_FOLDER, file))
}
