/**
 * The logo of a client with a metadata document on its consent page (docs/guides/oauth/client-id-metadata-documents.md).
 */
import test, { type ExecutionContext } from 'ava'
import sharp from 'sharp'
import { bootstrapped } from '../../../support/identity/person.js'
import { arrived, begin, protectedResource } from '../../../support/oauth/documented-client.js'
import { documentServer, type Served } from '../../../support/oauth/document-server.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedService } from '../../../support/service.js'

const host = await documentServer()
const running = await sharedService('hosts')
const person = await bootstrapped(running)
const resource = await protectedResource(running, person.tenantId)

const image = (format: 'png' | 'jpeg' | 'webp' | 'gif', side = 32) =>
  sharp({ create: { width: side, height: side, channels: 3, background: '#336699' } })
    .toFormat(format)
    .toBuffer()

/** The consent page of a client with this logo. */
async function consentOf(t: ExecutionContext, logoUri: string) {
  const browser = openBrowser(running)
  const page = await arrived(
    browser,
    person,
    begin(host.client({ logo_uri: logoUri }), { resource }).path,
  )
  t.true(page.html.includes('data-client-host'), page.html)
  const csp = String(page.headers['content-security-policy'])
  const shown = /<img src="(?<src>[^"]*)" alt="" class="logo large">/.exec(page.html)?.groups?.[
    'src'
  ]
  return { shown: shown ?? null, csp, html: page.html }
}

for (const format of ['png', 'jpeg', 'webp'] as const)
  test(`a logo in ${format} is fetched once, and embedded in the page`, async (t) => {
    const bytes = await image(format)
    const path = `/logo.${format}`
    // The bytes decide, whatever the host calls them.
    const url = host.serve(path, { body: bytes, headers: { 'content-type': 'text/html' } })
    for (let times = 0; times < 2; times += 1) {
      const { shown, csp } = await consentOf(t, url)
      t.is(shown, `data:image/${format};base64,${bytes.toString('base64')}`)
      t.regex(csp, /img-src 'self' data:/)
    }
    t.is(host.asked.filter((one) => one === path).length, 1)
  })

const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
const bad: Readonly<Record<string, () => Promise<Served> | Served>> = {
  'an SVG image': () => ({ body: SVG, headers: { 'content-type': 'image/png' } }),
  'another format': async () => ({ body: await image('gif') }),
  'more than 1,024 pixels per side': async () => ({ body: await image('png', 1025) }),
  'more than 64 KiB': async () => ({
    body: Buffer.concat([await image('png'), Buffer.alloc(64 * 1024)]),
  }),
  'a redirect': () => ({ body: '', status: 302, headers: { location: `${host.origin}/logo.png` } }),
  'an error': async () => ({ body: await image('png'), status: 404 }),
  'an empty body': () => ({ body: '' }),
  'no answer': () => () => undefined,
}
for (const [why, served] of Object.entries(bad))
  test(`a logo is not shown: ${why}`, async (t) => {
    const url = host.serve(`/bad/${encodeURIComponent(why)}`, await served())
    const { shown, html } = await consentOf(t, url)
    t.is(shown, null)
    t.true(html.includes('class="monogram large'))
  })

test('a logo at a name without a host is not shown', async (t) => {
  t.is((await consentOf(t, 'https://none.invalid/logo.png')).shown, null)
})
