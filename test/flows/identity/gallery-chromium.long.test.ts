/**
 * Every hosted page in every state that has a picture in docs/guides/identity/hosted-pages.md, in a real browser:
 * accessibility checks, small and large, forced colours, keyboard only, both schemes, left-to-right and right-to-left.
 * The walk in Arabic also requests each address in every other language.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import test from 'ava'
import { openChromium } from '../../support/pages/chromium.js'
import { byKeyboard, accessibilityFindings } from '../../support/pages/accessibility.js'
import { CONSOLE_PICTURES } from '../../support/gallery/console.js'
import {
  PICTURE_FOLDER,
  type PictureName,
  PICTURES,
  SCHEMES,
} from '../../support/gallery/pictures.js'
import { openStage, setScene } from '../../support/gallery/stage.js'
import { walkGallery } from '../../support/gallery/walk.js'
import { faultsOf, inEveryLanguage, shownInEveryLanguage } from '../../support/pages/languages.js'
import { LOCALES } from '../../../actors/domain/i18n/locales.js'
import { looksRight } from '../../support/pages/visual-checks.js'
import { testWithProgram } from '../../support/service/programs.js'
import { IS_LONG } from '../../support/runs.js'

/** The page with the most texts: in Chromium in every language, also in the short form. */
const REPRESENTATIVE: PictureName = 'account'
const TEMPLATES = 'gateway/pages/templates'

test('every page has a picture in both schemes, and every picture is in its guide', (t) => {
  const texts = readdirSync(TEMPLATES, { recursive: true, encoding: 'utf8' })
    // test/flows/operations walks the pages of the console and of the documentation.
    .filter((file) => file.endsWith('.eta') && !/^(?:console|docs)\//.test(file))
    .map((file) => [basename(file, '.eta'), readFileSync(`${TEMPLATES}/${file}`, 'utf8')] as const)
  const parts = new Set(
    texts.flatMap(([, text]) =>
      [...text.matchAll(/include\('@([a-z0-9-]+)'/g)].map(([, one]) => one),
    ),
  )
  const pages = texts.map(([name]) => name).filter((name) => name !== 'frame' && !parts.has(name))
  const pictured = new Set([...PICTURES.values()].map(({ page }) => page))
  t.deepEqual([...pictured].toSorted(), pages.toSorted())

  const names = [...PICTURES.keys(), ...CONSOLE_PICTURES.keys()]
  const files = names.flatMap((name) => SCHEMES.map((one) => `${name}-${one}.png`))
  t.deepEqual(readdirSync(PICTURE_FOLDER).toSorted(), files.toSorted())
  const rowOf = (name: string, words: string) =>
    `| ${words} | ![](../../pictures/${name}-light.png) | ![](../../pictures/${name}-dark.png) |`
  const rowsIn = (guide: string) =>
    readFileSync(`docs/guides/${guide}.md`, 'utf8')
      .split('\n')
      .filter((line) => line.includes('](../../pictures/'))
  t.deepEqual(
    rowsIn('identity/hosted-pages'),
    [...PICTURES].map(([name, { words }]) => rowOf(name, words)),
  )
  t.deepEqual(
    rowsIn('operations/console'),
    [...CONSOLE_PICTURES].map(([name, words]) => rowOf(name, words)),
  )
})

const WALKS: readonly (readonly ['light' | 'dark', 'en' | 'de' | 'ar'])[] = [
  ['light', 'en'],
  ['dark', 'ar'],
  ...(IS_LONG ? [['dark', 'de'] as const] : []),
]

for (const [colorScheme, locale] of WALKS) {
  testWithProgram(
    'chromium',
    `every page is accessible: ${colorScheme}, ${locale}`,
    async (t, path) => {
      t.timeout(900_000)
      const stage = await openStage()
      t.teardown(() => stage.end())
      const scene = await setScene(stage)
      t.teardown(() => scene.shop.api.close())
      const window = await openChromium(path, { colorScheme })
      // A locale of the browser would also set the language of `shownInEveryLanguage`.
      await window.context.setExtraHTTPHeaders({ 'accept-language': locale })
      t.teardown(() => window.close())
      const { page } = window
      const seen: string[] = []
      // Collected, because a change of the stylesheet affects many pages.
      const found: string[] = []
      let requested = 0
      await walkGallery(scene, window, async (name) => {
        seen.push(name)
        // The checks below change attributes of the page.
        const html = await page.content()
        t.is(await page.getAttribute('main', 'data-page'), PICTURES.get(name)!.page, name)
        // The errors of OAuth are in English, like the answers that link to them.
        const language = name.startsWith('oauth-error') ? 'en' : locale
        t.is(await page.getAttribute('html', 'lang'), language, name)
        await looksRight(t, page, `${name}-${colorScheme}`)
        // The tab order is the same in every scheme and language.
        const reached = locale === 'en' ? await byKeyboard(page) : []
        found.push(
          ...[...(await accessibilityFindings(page)), ...reached].map((one) => `${name}: ${one}`),
        )
        if (locale !== 'ar' || language === 'en') return
        found.push(...faultsOf(html, locale).map((one) => `${name}: ${one}`))
        const others = await inEveryLanguage(page)
        requested += others.requested
        const wanted = IS_LONG ? others.requested > 0 : name === REPRESENTATIVE
        const shown = wanted ? await shownInEveryLanguage(page) : []
        found.push(...[...others.found, ...shown].map((one) => `${name}, ${one}`))
      })
      t.deepEqual(found, [])
      // Pages that answer a form are not requested again.
      if (locale === 'ar') t.true(requested > (seen.length * LOCALES.length) / 2, `${requested}`)
      t.deepEqual(seen.toSorted(), [...PICTURES.keys()].toSorted(), 'every page was visited')
      const refused = window.complaints.filter((one) => !/status of 4\d\d/.test(one))
      t.deepEqual(refused, [], 'the content security policy blocked nothing')
    },
  )
}
