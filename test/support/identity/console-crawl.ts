/** Follows the links of the console. */
import type { Page, TestBrowser } from '../pages/browser.js'

const LINK = /href="(\/console[^"#]*)"/g
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

/** All pages that links of the console lead to, by path: each, or the first of each kind. */
export async function crawled(
  browser: TestBrowser,
  { isShort = false } = {},
): Promise<ReadonlyMap<string, Page>> {
  const pages = new Map<string, Page>()
  const seen = new Set<string>()
  const queue = ['/console']
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const name = isShort ? kindOf(path) : path
    if (seen.has(name) || /^\/console\/(?:style|sign-in)/.test(path)) continue
    seen.add(name)
    const page = await browser.get(path, { 'accept-language': 'en' })
    pages.set(path, page)
    for (const [, link = ''] of page.html.matchAll(LINK)) queue.push(link.replaceAll('&amp;', '&'))
  }
  return pages
}

/** Pages of objects of one kind look alike. */
const kindOf = (path: string) => path.replace(/\?.*/, '').replaceAll(UUID, '*')

/** One path of each kind. */
export function oneOfEach(paths: Iterable<string>): readonly string[] {
  const kinds = new Map<string, string>()
  for (const path of paths) {
    const kind = kindOf(path)
    if (!kinds.has(kind)) kinds.set(kind, path)
  }
  return [...kinds.values()]
}
