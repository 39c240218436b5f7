/** Texts of a page in each language: complete, and in no other language. */
import type { Page } from 'playwright-core'
import type { Text } from '../../../actors/domain/i18n/languages.js'
import { directionOf, type Locale, LOCALES } from '../../../actors/domain/i18n/locales.js'
import { TEXTS } from '../../../gateway/pages/texts/texts.js'
import { violations } from './chromium.js'

const KEYS: ReadonlySet<string> = new Set(Object.keys(TEXTS.en))
const sentencesOf = (text: Text) => (typeof text === 'string' ? [text] : Object.values(text))
/** English texts that cannot be part of another text. */
const SENTENCES = Object.values(TEXTS.en)
  .flatMap(sentencesOf)
  .filter((text) => text.length > 24 && !text.includes('{'))

/** What is wrong with the text of a page in a language. */
export function faultsOf(html: string, locale: Locale): string[] {
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

/**
 * Requests the address of the page in every language.
 * @returns the findings, and in how many languages the address has the page. A path that only a form opens has none.
 */
export async function inEveryLanguage(
  page: Page,
): Promise<{ readonly found: readonly string[]; readonly requested: number }> {
  const found: string[] = []
  let requested = 0
  const main = await page.getAttribute('main', 'data-page')
  for (const locale of LOCALES) {
    const headers = { 'accept-language': locale }
    const answer = await page.context().request.get(page.url(), { headers, maxRedirects: 0 })
    const html = await answer.text()
    if (!html.includes(`data-page="${main}"`)) continue
    requested += 1
    found.push(...faultsOf(html, locale).map((fault) => `${locale}: ${fault}`))
  }
  return { found, requested }
}

/** Opens the address of the page in every language at 320 pixels. @returns violations of axe rules and sideways scrolling. */
export async function shownInEveryLanguage(page: Page): Promise<readonly string[]> {
  const found: string[] = []
  const other = await page.context().newPage()
  await other.setViewportSize({ width: 320, height: 640 })
  for (const locale of LOCALES) {
    await other.setExtraHTTPHeaders({ 'accept-language': locale })
    await other.goto(page.url())
    const language = await other.getAttribute('html', 'lang')
    const isWide = await other.evaluate<boolean>(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth',
    )
    const faults = [
      ...(await violations(other)),
      ...(isWide ? ['the page scrolls sideways'] : []),
      ...(language === locale ? [] : [`the language is ${language}`]),
    ]
    found.push(...faults.map((fault) => `${locale}: ${fault}`))
  }
  await other.close()
  return found
}
