/** Follows the links of the console. */
import type { Page, TestBrowser } from '../pages/browser.js'

const LINK = /href="(\/console[^"#]*)"/g
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

/** All pages that links of the console lead to, by path. */
export async function crawled(
  browser: TestBrowser,
  language = 'en',
): Promise<ReadonlyMap<string, Page>> {
  const pages = new Map<string, Page>()
  const queue = ['/console']
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (pages.has(path) || /^\/console\/(?:style|sign-in)/.test(path)) continue
    const page = await browser.get(path, { 'accept-language': language })
    pages.set(path, page)
    for (const [, link = ''] of page.html.matchAll(LINK)) queue.push(link.replaceAll('&amp;', '&'))
  }
  return pages
}

/** One path of each kind: pages of objects of one kind look alike. */
export function oneOfEach(paths: Iterable<string>): readonly string[] {
  const kinds = new Map<string, string>()
  for (const path of paths) {
    const kind = path.replace(/\?.*/, '').replaceAll(UUID, '*')
    if (!kinds.has(kind)) kinds.set(kind, path)
  }
  return [...kinds.values()]
}
