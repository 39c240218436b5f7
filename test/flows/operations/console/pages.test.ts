/** All pages of the console, as the owner of a tenant with one object of every kind. */
import test from 'ava'
import { openConsole } from '../../../support/identity/console.js'
import type { Page } from '../../../support/pages/browser.js'
import { populateTenant } from '../../../support/service/populated-service.js'
import { startPopulatedService } from '../../../support/service/populated-service-parts.js'

const resources = await startPopulatedService()
const { api, receiver } = resources
const tenant = await populateTenant(api, 'Harbour', receiver)
const { browser } = tenant.person
const userId = tenant.objects['/api/v1/tenant-users/{user_id}']!
const promoted = await api.call('PATCH', `/api/v1/tenant-users/${userId}`, {
  token: tenant.workspace.token,
  json: { roles: ['owner'] },
})
test.after.always(async () => {
  await browser.close()
  await resources.close()
})

const PAGE_BYTES_MAX = 120 * 1024
const LINK = /href="(\/console[^"#]*)"/g
/** A JSON Web Token. */
const TOKEN = /eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\./

/** All pages that links of the console lead to, by path. */
async function crawled(language: string): Promise<ReadonlyMap<string, Page>> {
  await openConsole(browser, `/console?tenant_id=${tenant.workspace.tenantId}`)
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

test.serial(
  'every page opens, is small, and shows neither a token nor a broken value',
  async (t) => {
    t.is(promoted.status, 200, JSON.stringify(promoted.body))
    const pages = await crawled('en')
    t.true(pages.size > 100, [...pages.keys()].join('\n'))
    if (process.env['SHOW'])
      t.log([...pages].map(([p, { status, html }]) => `${status} ${html.length} ${p}`).join('\n'))
    for (const [path, { status, html }] of pages) {
      t.is(status, 200, `${path} ${html}`)
      t.true(Buffer.byteLength(html) <= PAGE_BYTES_MAX, `${path} ${html.length}`)
      t.notRegex(html, TOKEN, path)
      t.notRegex(html, /\[object |undefined|NaN/, path)
    }
  },
)
