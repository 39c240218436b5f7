/**
 * Every hosted page in every language. One walk through the gallery in Arabic checks the pages in Chromium. At each stop the
 * address is requested again in the other languages.
 */
import test from 'ava'
import type { Page } from 'playwright-core'
import type { Text } from '../../../actors/domain/i18n/languages.js'
import { directionOf, type Locale, LOCALES } from '../../../actors/domain/i18n/locales.js'
import { CATALOGUES } from '../../../gateway/pages/platform/language.js'
import { PICTURES, type PictureName } from '../../support/gallery/pictures.js'
import { openStage, setScene } from '../../support/gallery/stage.js'
import { walkGallery } from '../../support/gallery/walk.js'
import { openChromium, violations } from '../../support/pages/chromium.js'
import { testWithProgram } from '../../support/service/programs.js'

/** The page with the most texts: checked in Chromium in every language. */
const REPRESENTATIVE: readonly PictureName[] = ['account']
/** Pages that are in English in every language, like the documents that link to them. */
const ENGLISH: readonly PictureName[] = ['problem-type', 'problem-types']

const KEYS: ReadonlySet<string> = new Set(Object.keys(CATALOGUES.en))
const sentencesOf = (text: Text) => (typeof text === 'string' ? [text] : Object.values(text))
/** English texts that cannot be part of another text. */
const SENTENCES = Object.values(CATALOGUES.en)
  .flatMap(sentencesOf)
  .filter((text) => text.length > 24 && !text.includes('{'))

/** What is wrong with the text of a page in a language. */
function faultsOf(html: string, locale: Locale): string[] {
  const faults: string[] = []
  const root = `<html lang="${locale}" dir="${directionOf(locale)}">`
  if (!html.includes(root)) faults.push(`not ${root}: ${/<html[^>]*>/.exec(html)?.[0]}`)
  const shown = html.replaceAll(/<script[\s\S]*?<\/script>|<pre[\s\S]*?<\/pre>/g, '')
  const text = shown.replaceAll(/<[^>]*>/g, ' ')
  for (const [word] of text.matchAll(/\b[a-z_]+(?:\.[a-zA-Z_:-]+)+/g))
    if (KEYS.has(word)) faults.push(`the key ${word}`)
  for (const [blank] of text.matchAll(/\{[a-z]+\}/g)) faults.push(`the placeholder ${blank}`)
  if (/\b(?:undefined|null|NaN)\b|\[object /.test(text)) faults.push('a value that is not a text')
  if (locale !== 'en')
    for (const sentence of SENTENCES)
      if (text.includes(sentence)) faults.push(`in English: ${sentence}`)
  return faults
}

/** WCAG rules of axe, and reflow at 320 pixels. */
async function seen(page: Page): Promise<string[]> {
  await page.setViewportSize({ width: 320, height: 640 })
  const isWide = await page.evaluate<boolean>(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  )
  return [...(await violations(page)), ...(isWide ? ['the page scrolls sideways'] : [])]
}

testWithProgram('chromium', 'every page is complete in every language', async (t, path) => {
  t.timeout(900_000)
  const stage = await openStage()
  t.teardown(() => stage.end())
  const scene = await setScene(stage)
  t.teardown(() => scene.shop.api.close())
  const window = await openChromium(path, { colorScheme: 'light' })
  t.teardown(() => window.close())
  const { page, context } = window
  await context.setExtraHTTPHeaders({ 'accept-language': 'ar' })
  const found: string[] = []
  const visited: string[] = []
  let requested = 0
  await walkGallery(scene, window, async (name) => {
    visited.push(name)
    if (ENGLISH.includes(name)) return
    const note = (locale: Locale, faults: readonly string[]) =>
      found.push(...faults.map((fault) => `${name}, ${locale}: ${fault}`))
    note('ar', faultsOf(await page.content(), 'ar'))
    const size = page.viewportSize()!
    note('ar', await seen(page))
    await page.setViewportSize(size)
    const main = await page.getAttribute('main', 'data-page')
    for (const locale of LOCALES) {
      // A path that only a form opens has no page of its own.
      const headers = { 'accept-language': locale }
      const answer = await context.request.get(page.url(), { headers, maxRedirects: 0 })
      const html = await answer.text()
      if (!html.includes(`data-page="${main}"`)) continue
      requested += 1
      note(locale, faultsOf(html, locale))
    }
    if (!REPRESENTATIVE.includes(name)) return
    const other = await context.newPage()
    for (const locale of LOCALES) {
      await other.setExtraHTTPHeaders({ 'accept-language': locale })
      await other.goto(page.url())
      t.is(await other.getAttribute('html', 'lang'), locale, name)
      note(locale, await seen(other))
    }
    await other.close()
  })
  t.deepEqual(found, [])
  t.deepEqual(visited.toSorted(), [...PICTURES.keys()].toSorted(), 'every page was visited')
  // Pages that answer a form are not requested again.
  t.true(requested > (visited.length * LOCALES.length) / 2, `${requested} pages`)
})

test('the faults of a page are found', (t) => {
  const page = (words: string) => `<html lang="fr" dir="ltr"><p>${words}</p></html>`
  t.deepEqual(faultsOf(page('Bonjour'), 'fr'), [])
  t.deepEqual(faultsOf(page('login.title'), 'fr'), ['the key login.title'])
  t.deepEqual(faultsOf(page('Bonjour {name}'), 'fr'), ['the placeholder {name}'])
  t.deepEqual(faultsOf(page(SENTENCES[0]!), 'fr'), [`in English: ${SENTENCES[0]!}`])
  t.is(faultsOf(page('Bonjour'), 'ar').length, 1)
})
