/** The headless browser for tests. */
import { type Browser, openBrowser as open } from '../../../runtime/client/browser.js'

export {
  attribute,
  dataIn,
  type Form,
  type Page,
  unescaped,
} from '../../../runtime/client/browser.js'
export type TestBrowser = Browser

export function openBrowser({
  baseUrl,
  ca,
}: {
  readonly baseUrl: string
  readonly ca?: string | undefined
}): TestBrowser {
  return open({ baseUrl, ca, userAgent: 'test browser' })
}
