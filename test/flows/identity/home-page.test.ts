/** The start page, the files at well-known addresses, and the pages of problem types. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import test from 'ava'
import { LOCALES } from '../../../actors/domain/i18n/locales.js'
import { OWNERSHIP_SUITE } from '../../../actors/domain/signed-strings.js'
import { PROBLEM_TEXTS, PROBLEM_TYPES } from '../../../gateway/response/problems.js'
import { notThrough, SERVING_PROCESSES } from '../../support/fleet/through.js'
import { apiOf } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sharedService } from '../../support/service.js'
import { testWithProgram } from '../../support/service/programs.js'
import { IS_LONG } from '../../support/runs.js'

const at = await sharedService('plain')

const BROWSER = 'text/html,application/xhtml+xml,*/*;q=0.8'
const open = (path: string, language = 'en', headers: Record<string, string> = {}) =>
  fetch(new URL(path, at.baseUrl), {
    headers: { accept: BROWSER, 'accept-language': language, ...headers },
    redirect: 'manual',
  })
const read = (path: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, at.baseUrl), { headers, redirect: 'manual' })

test('the start page describes the service, and all its links work', async (t) => {
  const page = await open('/')
  t.is(page.status, 200)
  t.regex(page.headers.get('content-type') ?? '', /^text\/html/)
  const text = await page.text()
  t.true(text.includes(at.issuer))
  const links = [...text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, path]) => path!)
  for (const path of [
    '/console',
    '/api/docs',
    '/auth.md',
    '/llms.txt',
    // Only a process with all planes keeps the mail that it sends.
    ...(SERVING_PROCESSES === 1 ? ['/dev/mail'] : []),
  ])
    t.true(links.includes(path), path)
  for (const path of links) {
    const { status } = await open(path)
    t.is(status, path.startsWith('/console') ? 303 : 200, path)
  }
  t.regex(await (await open('/', 'de')).text(), /lang="de"[\s\S]*Identitätsanbieter/)
  t.is((await open('/nothing-here')).status, 404)
})

test('the start page asks for the workspace of the visitor', async (t) => {
  const api = apiOf(at)
  const { body } = await api.workspace('Harbour')
  const slug = String(body['tenant_slug'])
  const browser = openBrowser(at)
  const home = await browser.get('/')
  const [form] = home.forms
  const named = new URLSearchParams({ tenant_slug: slug })
  t.is(form?.action, '/auth/login')
  const signIn = await browser.get(`/auth/login?${named}`).gives(200)
  t.true(signIn.html.includes('Harbour'), signIn.html)
  const unknown = await browser.get('/auth/login?tenant_slug=no-such-workspace').gives(404)
  t.true(unknown.html.includes('No workspace has this slug'), unknown.html)
})

test('in development the start page leads to workspaces, and never to the control plane', async (t) => {
  await apiOf(at).workspace('Quayside')
  const text = await (await open('/')).text()
  const [, signIn = ''] = /href="(\/auth\/login\?tenant_slug=[a-z0-9-]+)"/.exec(text) ?? []
  t.is((await open(signIn)).status, 200, signIn)
  t.regex(text, /href="\/console\?tenant_slug=[a-z0-9-]+"/)
  t.notRegex(text, /control.plane/i)
})

test('the start page of the host of a tenant is its sign-in', async (t) => {
  notThrough('its browser needs a certificate for the host of a tenant')
  const { body } = await apiOf(at).workspace('Moorings')
  const { port } = new URL(at.issuer)
  const home = await openBrowser(at).get('/', {
    host: `${String(body['tenant_slug'])}.localhost:${port}`,
  })
  t.is(home.status, 303, home.html)
  t.is(home.location, '/auth/account')
})

testWithProgram('curl', 'the curl on the start page works as it is', async (t, curl) => {
  const text = await (await open('/')).text()
  const [, line = ''] = /data-curl[^>]*><code>curl ([^<]+)<\/code>/.exec(text)!
  const ca = at.ca === undefined ? [] : ['-k']
  const { stdout } = await promisify(execFile)(curl, ['-sS', ...ca, ...line.split(' ')])
  t.is((JSON.parse(stdout) as { issuer: string }).issuer, at.issuer)
})

const TYPES = {
  '/favicon.ico': 'image/x-icon',
  '/favicon.svg': 'image/svg+xml',
  '/robots.txt': 'text/plain; charset=utf-8',
  '/llms.txt': 'text/plain; charset=utf-8',
  '/auth.md': 'text/markdown; charset=utf-8',
  '/.well-known/security.txt': 'text/plain; charset=utf-8',
  '/documentation/get-started/agent-developer.md': 'text/markdown; charset=utf-8',
  '/documentation/glossary.md': 'text/markdown; charset=utf-8',
  '/documentation/guides/oauth/dpop.md': 'text/markdown; charset=utf-8',
  '/errors': 'text/html; charset=utf-8',
  '/errors/not-found': 'text/html; charset=utf-8',
}

for (const [path, type] of Object.entries(TYPES)) {
  test(`${path} has its type, may be cached, and answers HEAD and If-None-Match`, async (t) => {
    const got = await read(path)
    t.is(got.status, 200)
    t.is(got.headers.get('content-type'), type)
    t.regex(got.headers.get('cache-control') ?? '', /^public, max-age=\d+$/)
    const body = await got.arrayBuffer()
    t.true(body.byteLength > 0)
    const etag = got.headers.get('etag')!
    const head = await fetch(new URL(path, at.baseUrl), { method: 'HEAD' })
    t.is(head.status, 200)
    t.is(head.headers.get('etag'), etag)
    t.is((await head.arrayBuffer()).byteLength, 0)
    t.is((await read(path, { 'if-none-match': etag })).status, 304)
  })
}

test('a browser gets Markdown as plain text, and a client the type that it asks for', async (t) => {
  for (const path of ['/auth.md', '/llms.txt', '/documentation/glossary.md']) {
    const typeOf = async (accept: string) =>
      (await read(path, { accept })).headers.get('content-type')
    t.is(await typeOf(BROWSER), 'text/plain; charset=utf-8', path)
    t.is(await typeOf('text/markdown'), 'text/markdown; charset=utf-8', path)
    t.is(await typeOf('text/plain'), 'text/plain; charset=utf-8', path)
    t.is((await read(path, { accept: 'image/png' })).status, 406)
  }
})

test('error pages lead on', async (t) => {
  for (const [path, status] of [
    ['/nowhere', 404],
    ['/pay/unknown', 404],
    ['/auth/email-verifications/unknown', 404],
  ] as const) {
    const answer = await read(path, { accept: BROWSER })
    t.is(answer.status, status, path)
    t.regex(await answer.text(), /<a class="button" href="\/[^"]*">/, path)
  }
})

test('the icon has the sizes of browsers, and the picture has no script', async (t) => {
  const icon = Buffer.from(await (await read('/favicon.ico')).arrayBuffer())
  t.is(icon.readUInt16LE(2), 1)
  t.deepEqual(
    [0, 1, 2].map((index) => icon[6 + 16 * index]),
    [16, 32, 48],
  )
  const svg = await (await read('/favicon.svg')).text()
  t.regex(svg, /^<svg [^>]*viewBox=/)
  t.notRegex(svg, /script|href|style/)
})

test('robots.txt keeps crawlers away from pages of people', async (t) => {
  const lines = (await (await read('/robots.txt')).text()).split('\n')
  t.true(lines.includes('User-agent: *'))
  t.true(lines.includes('Disallow: /'))
  t.true(lines.includes('Allow: /documentation/'))
  t.false(lines.some((line) => line.startsWith('Allow: /auth/')))
})

test('security.txt has the fields of RFC 9116', async (t) => {
  const text = await (await read('/.well-known/security.txt')).text()
  const fields = new Map(
    text
      .trim()
      .split('\n')
      .map(
        (line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const,
      ),
  )
  t.is(fields.get('Contact'), 'mailto:security@svc.example')
  t.is(fields.get('Canonical'), `${at.issuer}/.well-known/security.txt`)
  const days = (Date.parse(fields.get('Expires')!) - Date.now()) / 86_400_000
  t.true(days > 100 && days < 365, String(days))
  const without = await sharedService('people')
  t.teardown(() => without.end())
  const absent = await fetch(`${without.baseUrl}/.well-known/security.txt`)
  t.is(absent.status, 404)
  t.is(absent.headers.get('content-type'), 'application/problem+json')
})

test('password managers find the page to change the password', async (t) => {
  const { status, headers } = await read('/.well-known/change-password')
  t.is(status, 303)
  t.is(headers.get('location'), '/auth/account/password')
})

test('llms.txt follows llmstxt.org, and all its links work', async (t) => {
  const text = await (await read('/llms.txt')).text()
  t.regex(text, /^# svc\n\n> /)
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, url]) => url!)
  t.true(links.length > 40, String(links.length))
  for (const path of ['/auth.md', '/openapi.json', '/.well-known/oauth-authorization-server'])
    t.true(links.includes(at.issuer + path), path)
  for (const url of links) {
    const got = await fetch(url)
    await got.arrayBuffer()
    t.is(got.status, 200, url)
  }
})

test('auth.md names metadata, registration and delegation, with addresses that exist', async (t) => {
  const text = await (await read('/auth.md')).text()
  for (const heading of ['Metadata', 'Register', 'Log in', 'Ask a user for authority', 'Errors'])
    t.true(text.includes(`\n## ${heading}\n`), heading)
  const document = (await (await read('/openapi.json')).json()) as { paths: Record<string, object> }
  const named = [...text.matchAll(/(GET|POST) (https?:\/\/\S+?)(?=[\s,:.]*(?:\s|$))/g)]
  t.true(named.length >= 8, String(named.length))
  t.true(text.includes(OWNERSHIP_SUITE))
  for (const [, method, url] of named) {
    const { pathname } = new URL(url!)
    t.true(method!.toLowerCase() in (document.paths[pathname] ?? {}), `${method} ${pathname}`)
  }
})

test('an unknown page of the documentation is 404, and no path leaves the folder', async (t) => {
  for (const path of ['nothing.md', 'guides', 'guides/oauth/nothing.md', 'README'])
    t.is((await read(`/documentation/${path}`)).status, 404, path)
  for (const path of ['..%2fpackage.json', 'guides/..%2f..%2fpackage.json', '%2e%2e/package.json'])
    t.true([400, 404].includes((await read(`/documentation/${path}`)).status), path)
})

test('the page of a problem type has cause, remedy and retry rule', async (t) => {
  const page = await open('/errors/rate-limited')
  t.is(page.status, 200)
  const text = await page.text()
  t.regex(text, /<h1>Rate limited<\/h1>[\s\S]*429[\s\S]*rate_limited/)
  t.regex(text, /Cause[\s\S]*What to do[\s\S]*Retry[\s\S]*Retry-After/)
  const [, style] = /<link rel="stylesheet" href="([^"]+)">/.exec(text) ?? []
  t.is((await open(style!)).status, 200)
  const list = await (await open('/errors')).text()
  const names = [...list.matchAll(/href="\/errors\/([a-z-]+)"/g)].map(([, name]) => name)
  const types = Object.keys(PROBLEM_TYPES)
  t.deepEqual(names.slice(0, types.length), types, 'OAuth errors follow')
  t.is((await read('/errors/no-such-type')).status, 404)
  const unknown = await open('/errors/no-such-type')
  t.is(unknown.status, 404)
  t.regex(await unknown.text(), /href="\/errors\/rate-limited"/, 'a browser gets the list')
})

test('a path below /errors that no page can have is answered as other unknown paths are', async (t) => {
  for (const name of ['%00', '%zz', '%2f', 'a%0ab', 'x'.repeat(65), 'a/b', '', 'no-such-type']) {
    const page = await open(`/errors/${name}`)
    t.is(page.status, 404, name)
    t.regex(page.headers.get('content-type') ?? '', /^text\/html/, name)
    for (const accept of ['application/json', '*/*']) {
      const answer = await fetch(`${at.baseUrl}/errors/${name}`, { headers: { accept } })
      t.is(answer.status, 404, `${accept} ${name}`)
      t.is(answer.headers.get('content-type'), 'application/problem+json', name)
      t.like(await answer.json(), { error: 'not_found' })
    }
    const posted = await fetch(`${at.baseUrl}/errors/${name}`, { method: 'POST' })
    t.is(posted.status, 404, `POST ${name}`)
  }
})

test('the page of a problem type is in the language of the browser', async (t) => {
  for (const locale of LOCALES) {
    const texts = PROBLEM_TEXTS[locale]
    const get = (path: string) => open(path, locale)
    const all = Object.entries(texts.types)
    const isEach = IS_LONG || locale === 'de'
    for (const [name, { title }] of isEach ? all : all.slice(0, 1)) {
      const page = await get(`/errors/${name}`)
      const html = await page.text()
      t.is(page.headers.get('vary'), 'Accept-Language')
      t.true(html.includes(`<html lang="${locale}"`), `${locale} ${name}`)
      t.true(html.includes(`<h1>${title}</h1>`), `${locale} ${name}: ${title}`)
      t.regex(html, new RegExp(`<code translate="no">${name.replaceAll('-', '_')}</code>`))
      t.notRegex(html, /`|\{|undefined/)
    }
    const list = await (await get('/errors')).text()
    t.true(list.includes(`<h1>${texts.words.all}</h1>`))
    t.true(list.includes('<code translate="no" dir="ltr">type</code>'))
  }
})
