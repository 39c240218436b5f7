/** All pages of the console, as the owner of a tenant with one object of every kind. */
import test from 'ava'
import { ownerOf } from '../../../support/identity/console.js'
import { crawled } from '../../../support/identity/console-crawl.js'
import { populateTenant } from '../../../support/service/populated-service.js'
import { startPopulatedService } from '../../../support/service/populated-service-parts.js'

const resources = await startPopulatedService()
const { api, receiver } = resources
const tenant = await populateTenant(api, 'Harbour', receiver)
const browser = await ownerOf(api, tenant)
test.after.always(async () => {
  await browser.close()
  await resources.close()
})

const PAGE_BYTES_MAX = 120 * 1024
/** A JSON Web Token. */
const TOKEN = /eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\./

test.serial(
  'every page opens, is small, and shows neither a token nor a broken value',
  async (t) => {
    const pages = await crawled(browser)
    t.true(pages.size > 140, [...pages.keys()].join('\n'))
    for (const [path, { status, html }] of pages) {
      t.is(status, 200, `${path} ${html}`)
      t.true(Buffer.byteLength(html) <= PAGE_BYTES_MAX, `${path} ${html.length}`)
      t.notRegex(html, TOKEN, path)
      t.notRegex(html, /\[object |undefined|NaN/, path)
      if (path.includes('/do/export')) continue
      // Each page names its call, with a placeholder for the token.
      const isCall = path !== '/console' && !path.startsWith('/console?')
      t.is(html.includes('Authorization: Bearer $TOKEN'), isCall, path)
    }
  },
)

test.serial('the pages are German for a German browser', async (t) => {
  for (const path of ['/console', '/console/applications', '/console/people/do/invite']) {
    const { html } = await browser.get(path, { 'accept-language': 'de' })
    t.regex(html, /<html lang="de" dir="ltr">/)
    t.regex(html, /Übersicht/)
    t.regex(html, /Abmelden/)
  }
})
