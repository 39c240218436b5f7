/** Search of the documentation, by section. The server searches, so the page needs no script. */
import type MiniSearch from 'minisearch'
import { type DocsPage, weightOf } from './library.js'
import type { DocsContent } from './html.js'

const RESULTS_MAX = 20
const EXCERPT_CHARS = 200
/** Sections that are added between two turns of the event loop. */
const CHUNK = 20

type Section = {
  readonly id: number
  readonly title: string
  readonly heading: string
  readonly text: string
  readonly path: string
  readonly weight: number
}

type DocsResult = {
  readonly path: string
  readonly title: string
  /** Empty for the beginning of a page. */
  readonly heading: string
  readonly excerpt: string
}

export interface DocsSearch {
  /** The best sections for some words, best first. */
  find(words: string): readonly DocsResult[]
}

/** Reads and indexes all pages, a few sections at a time: other requests are answered in between. */
export async function openDocsSearch(
  pages: Iterable<DocsPage>,
  contentOf: (page: DocsPage) => Promise<DocsContent>,
): Promise<DocsSearch> {
  const { default: Index } = await import('minisearch')
  const index: MiniSearch<Section> = new Index<Section>({
    fields: ['title', 'heading', 'text'],
    storeFields: ['title', 'heading', 'text', 'path', 'weight'],
    searchOptions: {
      boost: { title: 8, heading: 4 },
      boostDocument: (_id, _term, stored) => Number(stored?.['weight'] ?? 1),
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 5 ? 0.2 : false),
      combineWith: 'AND',
    },
  })
  let id = 0
  for (const page of pages) {
    const { parts } = await contentOf(page)
    const sections = parts.map(({ heading, text }) => ({
      id: (id += 1),
      title: page.title,
      weight: weightOf(page),
      heading: heading?.text ?? '',
      text,
      path: heading === null ? page.path : `${page.path}#${heading.id}`,
    }))
    await index.addAllAsync(sections, { chunkSize: CHUNK })
  }
  return {
    find(words) {
      const found = index.search(words)
      // A whole question seldom has all of its words in one section.
      const results = found.length > 0 ? found : index.search(words, { combineWith: 'OR' })
      return results.slice(0, RESULTS_MAX).map(({ path, title, heading, text, terms }) => ({
        path: String(path),
        title: String(title),
        heading: String(heading),
        excerpt: excerptOf(String(text), terms),
      }))
    },
  }
}

/** The text around the first of the terms. */
function excerptOf(text: string, terms: readonly string[]): string {
  const lower = text.toLowerCase()
  const places = terms.map((term) => lower.indexOf(term)).filter((place) => place >= 0)
  const place = places.length === 0 ? 0 : Math.min(...places)
  const begin = Math.max(0, text.lastIndexOf(' ', Math.max(0, place - EXCERPT_CHARS / 4)) + 1)
  const shown = text.slice(begin, begin + EXCERPT_CHARS)
  return `${begin > 0 ? '… ' : ''}${shown}${begin + EXCERPT_CHARS < text.length ? ' …' : ''}`
}
