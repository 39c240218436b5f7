/** Japanese. */
import type { MailCatalogue } from './en.js'

export const ja: MailCatalogue = {
  'mail.greeting': 'いつもご利用いただきありがとうございます。',
  'mail.ignore': 'お心当たりがない場合は、このメールを無視してください。何も変更されません。',
  'mail.link.once': 'リンクの使用は {time} まで、1 回限りです。',
  'mail.link.copy': 'ボタンが機能しない場合は、次のアドレスをブラウザにコピーしてください:',
  'mail.sender': 'このメールは {tenant} に代わって送信されました。',

  'sign_in.subject': '{tenant} へのログイン',
  'sign_in.lead': 'このアドレスで {tenant} へのログインがリクエストされました。',
  'sign_in.code': 'リクエストしたページで、次のコードを入力してください:',
  'sign_in.code.until': 'コードの使用は {time} まで、1 回限りです。誰にも教えないでください。',
  'sign_in.link': 'リクエストしたブラウザで次のリンクを開き、確認してください:',
  'sign_in.button': 'ログイン',

  'password_reset.subject': '{tenant} の新しいパスワードの設定',
  'password_reset.lead':
    '{tenant} のパスワードの再設定がリクエストされました。こちらから新しいパスワードを設定してください:',
  'password_reset.button': '新しいパスワードを設定',

  'password_changed.subject': 'パスワードが変更されました',
  'password_changed.lead':
    '{tenant} のアカウントのパスワードが {time} に変更されました。他のすべての場所からログアウトされました。',
  'password_changed.alarm':
    'お心当たりがない場合は、ただちにパスワードを再設定し、{tenant} の管理者に連絡してください。',

  'account_recovery.subject': '{tenant} のアカウントの復旧',
  'account_recovery.lead':
    'サービスの運用者が {time} に、{tenant} のアカウント {account} に新しいパスワードを設定し、第2要素を削除するリンクを発行しました。',
  'account_recovery.alarm': '心当たりがない場合は、すぐにサービスの運用者にお問い合わせください。',

  'admin_password_reset.subject': '{tenant} のパスワードがリセットされました',
  'admin_password_reset.lead':
    '{tenant} の管理者がパスワードをリセットしました。以前のパスワードは使用できなくなり、ログアウトされました。こちらから新しいパスワードを設定してください:',
  'admin_factors_reset.subject': '{tenant} の第2要素が削除されました',
  'admin_factors_reset.lead':
    '{tenant} の管理者が {time} に、パスキー、認証アプリ、リカバリーコードを削除しました。ログアウトされました。次回のログイン時に新しく設定できます。',
  'admin_factors_reset.password':
    'ほかにログインする方法が残っていません。こちらからパスワードを設定してください:',
  'admin_reset_refused.subject': '{tenant} のアカウントは変更されていません',
  'admin_reset_refused.lead':
    '{tenant} の管理者が {time} に、アカウントのパスワードまたは第2要素をリセットしようとしました。このアカウントはほかの場所でも使用されているため、何も変更されていません。どちらもアカウントページでご自身で変更できます。',
  'admin_reset.alarm': '心当たりがない場合は、{tenant} の管理者にお問い合わせください。',

  'invitation.subject': '{tenant} への招待',
  'invitation.lead': '{tenant} に招待されています。こちらから招待を承諾してください:',
  'invitation.button': '招待を承諾',

  'email_verification.subject': '{tenant} のメールアドレスの確認',
  'email_verification.lead': 'これがご自分のメールアドレスであることを確認してください:',
  'email_verification.button': 'アドレスを確認',

  'sign_up.subject': '{tenant} のアドレスの確認',
  'sign_up.lead': '{tenant} のアカウント作成を完了するには、アドレスを確認してください:',
  'sign_up.button': 'アカウント作成を完了',

  'sign_up_known.subject': '{tenant} のアカウントをすでにお持ちです',
  'sign_up_known.lead':
    'このアドレスで {tenant} に登録しようとしましたが、すでにアカウントをお持ちです。こちらからログインしてください:',
  'sign_up_known.button': 'ログイン',

  'confirmation_code.subject': '{tenant} のコード',
  'confirmation_code.lead': 'リクエストしたページで、次のコードを入力してください:',

  'text.code': '{code} は {tenant} のコードです。誰にも教えないでください。',
}
