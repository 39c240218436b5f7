/** What the sign-in page loads: only from this service, and how many bytes (docs/reference/page-design.md). */
import test from 'ava'
import { bootstrapped } from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'

const PAGE_BYTES_MAX = 60 * 1024
const FONT_BYTES_MAX = 400 * 1024

test('the sign-in page has at most 60 KiB besides its type faces, all from this service', async (t) => {
  const running = await sharedService('people')
  t.teardown(() => running.end())
  const { tenantSlug } = await bootstrapped(running)
  const url = new URL(`/auth/login?tenant_slug=${tenantSlug}`, running.baseUrl)
  const load = async (address: string) => {
    const answer = await fetch(new URL(address, url))
    t.is(answer.status, 200, address)
    return { answer, body: Buffer.from(await answer.arrayBuffer()) }
  }
  const page = await load(url.href)
  const html = page.body.toString()
  t.regex(page.answer.headers.get('content-security-policy')!, /font-src 'self'/)

  const linked = [...html.matchAll(/<(?:link|script|img)[^>]* (?:href|src)="([^"]+)"/g)]
    .map(([, address]) => address!)
    .filter((address) => !address.startsWith('data:'))
  t.deepEqual(
    linked.filter((address) => !address.startsWith('/auth/')),
    ['/favicon.svg'],
  )
  t.true(linked.some((address) => address.startsWith('/auth/script/')))
  const files = await Promise.all(linked.map(load))
  const typeOf = ({ answer }: (typeof files)[number]) => answer.headers.get('content-type')!
  const fonts = (of: typeof files) => of.filter((one) => typeOf(one) === 'font/woff2')
  const others = files.filter((one) => typeOf(one) !== 'font/woff2')
  const bytes = others.reduce((sum, { body }) => sum + body.length, page.body.length)
  t.true(bytes <= PAGE_BYTES_MAX, `${bytes} bytes`)

  const style = others.find((one) => typeOf(one).startsWith('text/css'))!.body.toString()
  const sources = [...style.matchAll(/url\(([^)]+)\)/g)].map(([, address]) => address!)
  t.true(sources.length >= 2)
  t.true(sources.every((address) => address.startsWith('/auth/font/')))
  t.true(sources.includes(new URL(fonts(files)[0]!.answer.url).pathname), 'one is preloaded')
  const faces = await Promise.all(sources.map(load))
  const faceBytes = faces.reduce((sum, { body }) => sum + body.length, 0)
  t.true(faceBytes <= FONT_BYTES_MAX, `${faceBytes} bytes`)
  for (const { answer, body } of faces) {
    t.is(body.subarray(0, 4).toString('latin1'), 'wOF2')
    t.is(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  }
  t.is((await fetch(new URL('/auth/font/0000000000000000', url))).status, 404)
})
