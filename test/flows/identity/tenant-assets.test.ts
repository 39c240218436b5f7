/** The logo and the favicon of a tenant, in a folder. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import sharp from 'sharp'
import { assetRetirement } from '../../../actors/identity/tenant-assets/retirement.js'
import { folderStore } from '../../../actors/identity/tenant-assets/store.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { apiOf, type Json } from '../../support/api.js'
import { testService } from '../../support/service.js'

const folder = await mkdtemp(join(tmpdir(), 'svc-assets-'))
const running = await testService({
  environment: { SVC_TENANT_ASSETS__ENABLED: 'true', SVC_TENANT_ASSETS__FOLDER: folder },
})
const api = apiOf(running)
test.after.always(() => rm(folder, { recursive: true, force: true }))

const PATH = '/api/v1/tenant/branding/assets'
const DAY_MS = 86_400_000

const picture = (width: number, height: number, color = '#0055aa') =>
  sharp({ create: { width, height, channels: 4, background: color } })
const png = (width: number, height: number, color?: string) =>
  picture(width, height, color).png().toBuffer()

async function put(token: string, kind: string, body: Uint8Array, type = 'image/png') {
  const answer = await fetch(`${api.at.baseUrl}${PATH}/${kind}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': type },
    body: new Uint8Array(body),
  })
  const text = await answer.text()
  return { status: answer.status, body: JSON.parse(text) as Json }
}

const loginPage = async (slug: unknown) => {
  const answer = await fetch(`${api.at.baseUrl}/auth/login?tenant_slug=${String(slug)}`)
  return { html: await answer.text(), policy: answer.headers.get('content-security-policy') }
}

const pathOf = (asset: Json) => new URL(String(asset['url'])).pathname
const fileOf = (asset: Json) => pathOf(asset).split('/').at(-1)!

test.serial(
  'a logo and a favicon are encoded again, shown on the pages and served forever',
  async (t) => {
    const { token, body, tenantId } = await api.workspace()
    const slug = body['tenant_slug']
    const none = { url: null, media_type: null, width: null, height: null, size_bytes: null }
    t.deepEqual((await api.list(PATH, token)).rows, [
      { kind: 'logo', ...none, created_at: null },
      { kind: 'favicon', ...none, created_at: null },
    ])
    const secret = 'taken at home by Ada'
    const jpeg = await picture(1800, 900)
      .withExif({ IFD0: { ImageDescription: secret } })
      .jpeg()
      .toBuffer()
    t.true(jpeg.includes(secret))
    const logo = await put(token, 'logo', jpeg, 'image/jpeg')
    t.is(logo.status, 200, JSON.stringify(logo.body))
    t.like(logo.body, { kind: 'logo', media_type: 'image/webp', width: 512, height: 256 })
    const favicon = await put(token, 'favicon', await png(20, 40))
    t.like(favicon.body, { kind: 'favicon', media_type: 'image/png', width: 64, height: 64 })
    t.deepEqual((await api.get(`${PATH}/logo`, token)).body, logo.body)
    t.deepEqual((await api.list(PATH, token)).rows, [logo.body, favicon.body])

    const path = pathOf(logo.body)
    t.regex(path, new RegExp(`^/assets/${tenantId}/[0-9a-f]{64}\\.webp$`))
    const served = await fetch(api.at.baseUrl + path)
    const bytes = Buffer.from(await served.arrayBuffer())
    t.is(served.status, 200)
    t.is(served.headers.get('content-type'), 'image/webp')
    t.is(served.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    t.is(served.headers.get('x-content-type-options'), 'nosniff')
    t.is(bytes.length, Number(logo.body['size_bytes']))
    t.false(bytes.includes(secret), 'metadata is not kept')
    t.like(await sharp(bytes).metadata(), { format: 'webp', width: 512, height: 256 })

    const shown = await loginPage(slug)
    t.true(shown.html.includes(`<img src="${path}" alt="" class="logo">`), shown.html)
    t.true(shown.html.includes(`<link rel="icon" href="${pathOf(favicon.body)}">`))
    t.regex(String(shown.policy), /img-src 'self' data:;/)
    // The branding is replaced as a whole, and the images are not part of it.
    const json = { branding: { color: '#112233' } }
    t.is((await api.patch('/api/v1/tenant/settings', token, json)).status, 200)
    t.true((await loginPage(slug)).html.includes(path))

    await api.delete(`${PATH}/logo`, token).gives(204)
    t.is((await api.delete(`${PATH}/logo`, token)).status, 404)
    t.false((await loginPage(slug)).html.includes(path))
    t.is((await fetch(api.at.baseUrl + path)).status, 200, 'a retired image is still served')
  },
)

test.serial('the same image again changes nothing; another one takes its place', async (t) => {
  const { token } = await api.workspace()
  const red = await png(40, 40, '#ff0000')
  const first = await put(token, 'logo', red)
  t.deepEqual(await put(token, 'logo', red), first)
  const second = await put(token, 'logo', await png(40, 40, '#00ff00'))
  t.not(second.body['url'], first.body['url'])
  const again = await put(token, 'logo', red)
  t.is(again.body['url'], first.body['url'])
  const { rows } = await api.list('/api/v1/audit-events?type=tenant.asset.uploaded', token)
  t.is(rows.length, 3)
  const data = rows[0]!['data'] as Json
  t.is(data['kind'], 'logo')
  t.is(`${String(data['sha256'])}.webp`, fileOf(first.body))
  t.is(`${String(data['replaced'])}.webp`, fileOf(second.body))
})

test.serial('concurrent uploads leave one image', async (t) => {
  const { token } = await api.workspace()
  const colors = ['#100000', '#200000', '#300000', '#400000']
  const answers = await Promise.all(
    colors.map(async (color) => put(token, 'logo', await png(30, 30, color))),
  )
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  const { body } = await api.get(`${PATH}/logo`, token)
  t.true(answers.some((answer) => answer.body['url'] === body['url']))
})

test.serial('what is not a small picture is refused', async (t) => {
  const { token, operator, body } = await api.workspace()
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
  const [fine, huge] = [await png(30, 30), await png(2001, 2000)]
  const cases = [
    ['SVG', svg, 'image/svg+xml', 415],
    ['GIF', fine, 'image/gif', 415],
    ['SVG as PNG', svg, 'image/png', 400],
    ['a text', Buffer.from('hello'), 'image/png', 400],
    ['nothing', Buffer.alloc(0), 'image/png', 400],
    ['a cut image', fine.subarray(0, fine.length - 20), 'image/png', 400],
    ['512 KiB and a byte', Buffer.alloc(512 * 1024 + 1), 'image/png', 413],
  ] as const
  for (const [what, bytes, type, status] of cases)
    t.is((await put(token, 'logo', bytes, type)).status, status, what)
  t.true(huge.length < 100_000, 'a small file of many pixels')
  const large = await put(token, 'logo', huge)
  t.like(large, { status: 400, body: { detail: 'The image must have at most 4,000,000 pixels.' } })
  t.is((await put(token, 'banner', fine)).status, 400)
  t.is((await put(operator, 'logo', fine)).status, 403, 'the control plane has no hosted pages')
  t.is((await put('nothing', 'logo', fine)).status, 401)
  t.false((await loginPage(body['tenant_slug'])).html.includes('/assets/'))
  t.is((await put(token, 'logo', await png(2000, 2000))).status, 200, '4,000,000 pixels')
})

test.serial('only files of the folder are served', async (t) => {
  const { token, tenantId } = await api.workspace()
  const { body } = await put(token, 'logo', await png(30, 30, '#010203'))
  const file = fileOf(body)
  const other = (await api.workspace('Other')).tenantId
  const paths: readonly (readonly [string, number])[] = [
    [`/assets/${tenantId}/${file}`, 200],
    [`/assets/${other}/${file}`, 404],
    [`/assets/${tenantId}/${'0'.repeat(64)}.webp`, 404],
    [`/assets/${tenantId}/..%2f${file}`, 400],
    [`/assets/..%2f${tenantId}/${file}`, 400],
    [`/assets/${tenantId}/${file}.bak`, 400],
  ]
  for (const [path, status] of paths)
    t.is((await fetch(api.at.baseUrl + path)).status, status, path)
})

test.serial(
  'a retired image is removed after the window, and one that is shown again stays',
  async (t) => {
    const { token, tenantId } = await api.workspace()
    const first = await put(token, 'logo', await png(31, 31, '#ff0000'))
    const second = await put(token, 'logo', await png(31, 31, '#00ff00'))
    const files = () => readdir(join(folder, tenantId))
    t.is((await files()).length, 2)
    const roundAfter = (days: number) =>
      assetRetirement({
        database: running.db.database,
        clock: { ...systemClock, now: () => new Date(Date.now() + days * DAY_MS) },
        store: folderStore(folder, silentLogger),
        base: '/assets/',
        retirementDays: 365,
      })(new AbortController().signal)
    await roundAfter(364)
    t.is((await files()).length, 2, 'the window has not passed')
    t.true((await roundAfter(366)) >= 1)
    t.deepEqual(await files(), [fileOf(second.body)])
    t.is((await fetch(String(first.body['url']))).status, 404)
    t.is((await fetch(String(second.body['url']))).status, 200)
    t.is(await roundAfter(366), 0, 'nothing is left to remove')
  },
)

test.serial('texts of the tenant are on its sign-in page, in their language', async (t) => {
  const { token, body } = await api.workspace()
  const slug = String(body['tenant_slug'])
  const change = (texts: unknown) =>
    api.patch('/api/v1/tenant/settings', token, { branding: { texts } })
  const texts = {
    en: { sign_in_heading: 'Welcome <back>', sign_in_note: 'Use your work account.' },
    de: { sign_in_note: 'Nur für Angestellte.' },
  }
  const changed = await change(texts).gives(200)
  t.deepEqual((changed.body['branding'] as Json)['texts'], texts)
  const pageIn = async (language: string) =>
    (
      await fetch(`${api.at.baseUrl}/auth/login?tenant_slug=${slug}`, {
        headers: { 'accept-language': language },
      })
    ).text()
  const english = await pageIn('en')
  t.true(english.includes('<h1>Welcome &lt;back&gt;</h1>'))
  t.true(english.includes('Use your work account.'))
  const german = await pageIn('de')
  t.true(german.includes('<h1>Anmelden</h1>'))
  t.true(german.includes('Nur für Angestellte.'))
  t.false((await pageIn('fr')).includes('data-tenant-note'))
  for (const bad of [
    { en: { sign_in_note: 'Go to evil.example now' } },
    { en: { sign_in_note: 'https://x' } },
    { en: { sign_in_heading: 'x'.repeat(81) } },
    { en: { sign_in_note: 'x'.repeat(301) } },
    { en: { sign_in_heading: 'a\nb' } },
    { xx: { sign_in_heading: 'Hello' } },
  ])
    t.is((await change(bad)).status, 400, JSON.stringify(bad))
})

test.serial('the deployment names the feature', async (t) => {
  const { body } = await api.get('/api/v1/capabilities')
  t.true((body['capabilities'] as string[]).includes('tenant_assets'))
})
