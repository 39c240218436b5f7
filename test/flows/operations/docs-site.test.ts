/** The documentation as pages of the service: every page, every link between them, and the search. */
import test from 'ava'
import { highlighted } from '../../../gateway/pages/platform/highlight.js'
import { FLOWS, flowPicture } from '../../support/pages/flow-pictures.js'
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

test('code has colours without a script, tabs, and a button that the script shows', async (t) => {
  const { text } = await get('/docs/get-started/api-developer')
  t.true(text.includes('<span class="k">import</span>'))
  t.regex(text, /<button [^>]*data-copy [^>]*hidden>Copy<\/button><pre/)
  const script = /<script src="([^"]+)" integrity="sha384-/.exec(text)![1]!
  t.is((await get(script)).type, 'text/javascript; charset=utf-8')
  const tabs = /<fieldset class="tabs">.*?<\/fieldset>/s.exec(text)![0]
  t.deepEqual(
    [...tabs.matchAll(/<label for="([^"]+)">([^<]+)/g)].map(([, , title]) => title),
    ['JavaScript', 'Python', 'Go'],
  )
  t.is(tabs.match(/ checked>/g)!.length, 1)
  const escape = (code: string) => code.replaceAll('<', '&lt;')
  t.is(
    highlighted('a = "<b>" # if', 'python', escape),
    'a = <span class="s">"&lt;b>"</span> <span class="c"># if</span>',
  )
  t.is(
    highlighted('if (x === 1) // y', 'js', escape),
    '<span class="k">if</span> (x === <span class="n">1</span>) <span class="c">// y</span>',
  )
  t.is(highlighted('<if>', 'unheard-of', escape), '&lt;if>')
})

test('pages follow each other in the order of reading, and pages for contributors are last', async (t) => {
  const { text } = await get('/docs')
  const groups = [...text.matchAll(/<h2>([^<]+)<\/h2>/g)].map(([, title]) => title)
  t.is(groups[0], 'Get started')
  t.is(groups.at(-1), 'For contributors')
  const menu = text.slice(text.indexOf('<nav id="menu"'))
  const paths = linksOf(menu)
  t.is(new Set(paths).size, paths.length, 'a page is in one group')
  t.is(paths[0], '/docs/get-started/application-developer')
  for (const [at, path] of paths.entries()) {
    if (at % 10 !== 0) continue
    const page = (await get(path)).text
    t.is(/rel="next" href="([^"]+)"/.exec(page)?.[1], paths[at + 1], path)
    t.is(/rel="prev" href="([^"]+)"/.exec(page)?.[1], paths[at - 1], path)
  }
})

test('the address of a page with .md is its Markdown', async (t) => {
  const { text } = await get('/docs/guides/oauth/dpop')
  const path = /<link rel="alternate" type="text\/markdown" href="([^"]+)">/.exec(text)![1]!
  t.is(path, '/docs/guides/oauth/dpop.md')
  const markdown = await get(path)
  t.is(markdown.type, 'text/markdown; charset=utf-8')
  t.regex(markdown.text, /^# DPoP/)
  t.is((await get('/docs/README.md')).status, 200)
  t.is((await get('/docs/guides/oauth/none.md')).status, 404)
})

test('a page that the browser keeps keeps its policy', async (t) => {
  for (const path of ['/docs', '/api/docs', '/api/docs/vault', '/api/docs/reference.css']) {
    const first = await fetch(running.baseUrl + path)
    const headers = { 'if-none-match': first.headers.get('etag')! }
    const again = await fetch(running.baseUrl + path, { headers })
    t.is(again.status, 304, path)
    const policy = first.headers.get('content-security-policy')
    t.is(again.headers.get('content-security-policy'), policy, path)
  }
})

test('the diagrams of flows are as their source says, in both schemes', async (t) => {
  for (const [name, flow] of Object.entries(FLOWS)) {
    const { status, type, text } = await get(`/docs/pictures/${name}.svg`)
    t.deepEqual([status, type], [200, 'image/svg+xml'])
    t.is(text, flowPicture(flow), 'node dist/test/support/pages/write-flow-pictures.js')
    t.regex(text, /prefers-color-scheme:dark/)
  }
  t.true(
    (await get('/docs/guides/oauth/device-flow')).text.includes('/docs/pictures/flow-device.svg'),
  )
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
  for (const words of ['webhook', 'backup', 'refresh token', 'delegation'])
    t.regex((await places(words))[0] ?? '', /^\/docs\/(?:guides|get-started)\//, words)
  t.true((await places('websauthn')).length > 0, 'a misspelled word')
  t.true((await results('zzzzqqqqzzzz')).includes('No page has these words.'))
  const script = await results('<script>alert(1)</script>')
  t.false(script.includes('<script>alert'))
  t.is((await get(`/docs/search?q=${'x'.repeat(201)}`)).status, 400)
  t.is((await get('/docs/search')).status, 200)
})
