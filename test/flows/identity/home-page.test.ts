/** The start page of the service and the pages of problem types in a browser. */
import test from 'ava'
import { testService, type TestService } from '../../support/service.js'

let at: TestService
test.before(async () => {
  at = await testService()
})
test.after.always(() => at?.end())

const open = (path: string, language = 'en') =>
  fetch(new URL(path, at.baseUrl), {
    headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'accept-language': language },
    redirect: 'manual',
  })

test('the start page describes the service, and all its links work', async (t) => {
  const page = await open('/')
  t.is(page.status, 200)
  t.regex(page.headers.get('content-type') ?? '', /^text\/html/)
  const text = await page.text()
  t.true(text.includes(at.issuer))
  const links = [...text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, path]) => path!)
  t.true(links.length >= 4, links.join())
  for (const path of links) {
    const { status } = await open(path)
    t.true(status === 200 || (path === '/auth/account' && status === 303), `${path}: ${status}`)
  }
  t.regex(await (await open('/', 'de')).text(), /lang="de"[\s\S]*Identitätsanbieter/)
  t.is((await open('/nothing-here')).status, 404)
})

test('the page of a problem type looks like the other pages', async (t) => {
  const page = await open('/errors/rate-limited')
  t.is(page.status, 200)
  const text = await page.text()
  t.regex(text, /<h1>Rate limited<\/h1>[\s\S]*429[\s\S]*rate_limited/)
  const [, style] = /<link rel="stylesheet" href="([^"]+)">/.exec(text) ?? []
  t.is((await open(style!)).status, 200)
})
