/** GET /docs/...: the documentation as HTML pages, with a search that needs no script. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type SharedBody, sharedBody } from '../../../response/shared-body.js'
import { renderDocsPage } from '../../../pages/platform/render.js'
import { NO_CONTEXT } from '../../../response/replies.js'
import { ownRoute, problem, type Rendered, type Route } from '../../../route.js'
import {
  DOCUMENTATION,
  DOCUMENTATION_FOLDER,
  MARKDOWN_DOCS,
  textBody,
  TextHeaders,
  textType,
} from '../markdown.js'
import type { DocsContent } from './html.js'
import { DOCS, docsGroups, type DocsPage, docsPages, readDocsFile } from './library.js'
import type { DocsSearch } from './search.js'

const MAX_AGE_SECS = 3_600
const QUERY_CHARS_MAX = 200
/** Pages of results that are kept. */
const SEARCHES_KEPT = 64
const PICTURE_TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  svg: 'image/svg+xml',
}

const STYLE = readFileSync(
  new URL('../../../../../gateway/pages/templates/docs/style.css', import.meta.url),
  'utf8',
)
const STYLE_BODY = sharedBody(STYLE)
const STYLE_DIGEST = createHash('sha256').update(STYLE).digest('hex').slice(0, 16)

const unknown = problem(404, 'not-found', { detail: 'There is no such page.' })
const part = z.string().max(100)
const DEPTHS = [['page'], ['group', 'page'], ['group', 'area', 'page']] as const
const Query = z.object({ q: z.string().max(QUERY_CHARS_MAX).optional() })

const shared = {
  method: 'GET',
  tags: ['First steps'],
  exposure: 'internal',
  security: { scheme: 'anonymous' },
  // A reader who follows a wrong link gets a page.
  errors: 'page',
} as const
const NOT_FOUND = { status: 404, contentType: 'text/html', schema: null } as const

/** Empty if the documentation is not installed. */
export function docsRoutes(): readonly Route[] {
  const pages = docsPages()
  if (pages.size === 0) return []
  const groups = docsGroups(pages.values())
  const files = new Set([...pages.values()].map(({ file }) => file))
  const contents = new Map<string, Promise<DocsContent>>()
  const contentOf = (page: DocsPage): Promise<DocsContent> => {
    // The reader of Markdown is loaded with the first page.
    const read = async () => (await import('./html.js')).docsContent(page.file, files)
    const content = contents.get(page.path) ?? read()
    contents.set(page.path, content)
    return content
  }
  let searching: Promise<DocsSearch> | undefined
  const search = () => {
    searching ??= import('./search.js').then(({ openDocsSearch }) =>
      openDocsSearch(pages.values(), contentOf),
    )
    return searching
  }
  const inOrder = groups.flatMap((group) => group.pages)
  const frame = (here: string | null, title: string) => ({
    title,
    markdown: here === null ? null : `${DOCS}/${pages.get(here)!.file}`,
    style: `${DOCS}/style/${STYLE_DIGEST}`,
    groups: groups.map((group) => ({
      title: group.title,
      links: group.pages.map(({ path, title: name }) => ({
        path,
        title: name,
        here: path === here,
      })),
    })),
  })

  const rendered = new Map<string, SharedBody>()
  const texts = new Map<string, SharedBody>()
  const searched = new Map<string, Rendered>()

  async function pageAt(path: string): Promise<Rendered> {
    const page = pages.get(path)
    if (page === undefined) return unknown.render(null, NO_CONTEXT)
    const known = rendered.get(path)
    if (known !== undefined) return htmlBody(known)
    const { html, headings } = await contentOf(page)
    const at = inOrder.indexOf(page)
    const near = { previous: inOrder[at - 1], next: inOrder[at + 1] }
    const source = `${DOCUMENTATION}/${page.file}`
    const body = sharedBody(
      renderDocsPage('docs-page', frame(path, page.title), { html, headings, source, ...near }),
    )
    rendered.set(path, body)
    return htmlBody(body)
  }

  /** The Markdown of a page: its address with `.md`. */
  function textAt(name: string, accept: string | undefined): Rendered {
    const text = texts.get(name) ?? sharedBody(readDocsFile(name))
    texts.set(name, text)
    return textBody(text, textType(accept, 'text/markdown'), MAX_AGE_SECS)
  }

  const index = ownRoute({
    ...shared,
    path: DOCS,
    operationId: 'getDocs',
    summary: 'The documentation as pages',
    responses: [{ status: 200, contentType: 'text/html', schema: null }],
    answer: () => pageAt(DOCS),
  })
  const byDepth = DEPTHS.map((names, depth) =>
    ownRoute({
      ...shared,
      path: `${DOCS}/${names.map((name) => `{${name}}`).join('/')}`,
      operationId: `getDocsPage${depth + 1}`,
      summary: 'A page of the documentation',
      params: z.object(Object.fromEntries(names.map((name) => [name, part]))),
      headers: TextHeaders,
      responses: [
        { status: 200, contentType: 'text/html', schema: null },
        ...MARKDOWN_DOCS,
        NOT_FOUND,
      ],
      answer: ({ params, headers }) => {
        const given = params as Readonly<Record<string, string>>
        const name = names.map((each) => given[each]).join('/')
        const { accept } = headers as z.infer<typeof TextHeaders>
        return files.has(name) ? textAt(name, accept) : pageAt(`${DOCS}/${name}`)
      },
    }),
  )
  const found = ownRoute({
    ...shared,
    path: `${DOCS}/search`,
    operationId: 'searchDocs',
    summary: 'Search the documentation',
    query: Query,
    responses: [{ status: 200, contentType: 'text/html', schema: null }],
    answer: async ({ query }) => {
      const words = ((query as z.infer<typeof Query>).q ?? '').trim()
      const known = searched.get(words)
      if (known !== undefined) return known
      const results = words === '' ? [] : (await search()).find(words)
      const title = words === '' ? 'Search' : `Search: ${words}`
      const body = renderDocsPage('docs-search', frame(null, title), { words, results })
      const page = htmlBody({ body })
      if (searched.size >= SEARCHES_KEPT) searched.clear()
      searched.set(words, page)
      return page
    },
  })
  return [index, found, styleRoute, pictureRoute, ...byDepth]
}

/** A page without an entity tag is not kept. */
function htmlBody({ body, etag }: Omit<SharedBody, 'etag'> & Partial<SharedBody>): Rendered {
  return {
    form: 'body',
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body,
    ...(etag === undefined ? {} : { etag }),
    cacheControl: etag === undefined ? 'no-store' : `public, max-age=${MAX_AGE_SECS}`,
  }
}

const styleRoute = ownRoute({
  ...shared,
  path: `${DOCS}/style/{digest}`,
  operationId: 'readDocsStyle',
  summary: 'The stylesheet of the documentation',
  params: z.object({ digest: z.string().max(64) }),
  responses: [{ status: 200, contentType: 'text/css', schema: null }, NOT_FOUND],
  answer: ({ params }) =>
    (params as { readonly digest: string }).digest === STYLE_DIGEST
      ? {
          form: 'body',
          status: 200,
          contentType: 'text/css; charset=utf-8',
          body: STYLE_BODY.body,
          cacheControl: 'public, max-age=31536000, immutable',
        }
      : unknown.render(null, NO_CONTEXT),
})

const pictures = new Map<string, SharedBody>()

function pictureAt(file: string): SharedBody {
  const picture = pictures.get(file) ?? sharedBody(readFileSync(file))
  pictures.set(file, picture)
  return picture
}

const pictureRoute = ownRoute({
  ...shared,
  path: `${DOCS}/pictures/{name}`,
  operationId: 'readDocsPicture',
  summary: 'A picture of the documentation',
  params: z.object({ name: z.string().regex(/^[a-z0-9-]{1,80}\.(?:png|svg)$/) }),
  responses: [
    { status: 200, contentType: 'image/png', schema: null },
    { status: 200, contentType: 'image/svg+xml', schema: null },
    NOT_FOUND,
  ],
  answer: ({ params }) => {
    const { name } = params as { readonly name: string }
    // The pattern of the name has no slash, so a path cannot leave the folder.
    const file = join(DOCUMENTATION_FOLDER, 'pictures', name)
    if (!existsSync(file)) return unknown.render(null, NO_CONTEXT)
    const type = PICTURE_TYPES[name.slice(name.lastIndexOf('.') + 1)]!
    return {
      form: 'body',
      status: 200,
      contentType: type,
      ...pictureAt(file),
      cacheControl: `public, max-age=${MAX_AGE_SECS}`,
    }
  },
})
