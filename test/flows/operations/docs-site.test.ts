/** The documentation as pages of the service: every page, every link between them, and the search. */
import test from 'ava'
import { sharedService } from '../../support/service.js'

const running = await sharedService('plain')

const get = async (path: string) => {
  const answer = await fetch(running.baseUrl + path)
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    text: await answer.text(),
  }
}
const linksOf = (html: string) => [...html.matchAll(/ href="([^"]+)"/g)].map(([, href]) => href!)

test('every page is served, and every link of a page leads to a page and a heading that exist', async (t) => {
  const pages = new Map<string, string>()
  const waiting = ['/docs']
  const fragments: (readonly [from: string, path: string, id: string])[] = []
  while (waiting.length > 0) {
    const path = waiting.pop()!
    if (pages.has(path)) continue
    const { status, type, text } = await get(path)
    t.is(status, 200, path)
    t.is(type, 'text/html; charset=utf-8', path)
    pages.set(path, text)
    for (const href of linksOf(text.slice(text.indexOf('<main')))) {
      if (/^(?:https?:|mailto:)/.test(href)) continue
      const [to, id] = href.split('#')
      const target = to === '' ? path : to!
      if (id !== undefined && id !== 'menu') fragments.push([path, target, id])
      if (target === '/docs' || target.startsWith('/docs/')) waiting.push(target)
    }
  }
  t.true(pages.size > 50, `${pages.size} pages`)
  for (const [from, path, id] of fragments)
    t.true(pages.get(path)?.includes(` id="${id}"`), `${from} links to ${path}#${id}`)
  const files = [...pages.values()].map((html) => /href="(\/documentation\/[^"]+)"/.exec(html)?.[1])
  for (const file of files) t.is((await get(file!)).status, 200, file)
})

test('pictures and stylesheets of a page are served, and nothing else of the folder', async (t) => {
  const { text } = await get('/docs/reference/page-design')
  const picture = /src="(\/docs\/pictures\/[^"]+)"/.exec(text)![1]!
  t.is((await get(picture)).type, 'image/png')
  const style = linksOf(text).find((href) => href.startsWith('/docs/style/'))!
  t.is((await get(style)).type, 'text/css; charset=utf-8')
  for (const path of [
    '/docs/none',
    '/docs/style/none',
    '/docs/pictures/none.png',
    '/docs/pictures/..%2FREADME.md',
    '/docs/reference/..%2F..%2Fpackage.json',
  ])
    t.not((await get(path)).status, 200, path)
  const unknown = await get('/docs/guides/none')
  t.deepEqual([unknown.status, unknown.type], [404, 'text/html; charset=utf-8'])
})

test('the search finds sections by their words, and shows what was asked as text', async (t) => {
  const results = async (words: string) => {
    const { status, text } = await get(`/docs/search?q=${encodeURIComponent(words)}`)
    t.is(status, 200)
    return text
  }
  const places = async (words: string) =>
    linksOf((await results(words)).split('<ol class="results">')[1] ?? '')
  t.true((await places('refresh token rotation'))[0]?.startsWith('/docs/'), 'words')
  t.true((await places('DPoP')).some((path) => path.startsWith('/docs/guides/oauth/dpop')))
  t.true((await places('websauthn')).length > 0, 'a misspelled word')
  t.true((await results('zzzzqqqqzzzz')).includes('No page has these words.'))
  const script = await results('<script>alert(1)</script>')
  t.false(script.includes('<script>alert'))
  t.is((await get(`/docs/search?q=${'x'.repeat(201)}`)).status, 400)
  t.is((await get('/docs/search')).status, 200)
})
