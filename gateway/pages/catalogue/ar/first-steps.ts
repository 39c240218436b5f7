/** Texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for': 'سجّل الدخول لعرض حسابك، أو اقرأ كيفية ربط تطبيق أو وكيل.',
  'home.workspace': 'معرّف مساحة العمل',
  'home.console': 'فتح وحدة التحكم',
  'home.mail': 'بريد خدمة التطوير هذه',
  'home.agents': 'ابدأ هنا إذا كنت وكيلًا',
  'home.overview': 'نظرة عامة للنماذج اللغوية',
  'home.mcp': 'خادم MCP، دون بيانات اعتماد',

  'error.home': 'الانتقال إلى صفحة البدء',

  'register.title': 'إنشاء حسابك',
  'register.lead': 'أنشئ حسابًا لدى {tenant}. سنرسل إليك بالبريد الإلكتروني رابطًا لتأكيد عنوانك.',
  'register.submit': 'إرسال الرابط',
  'register.login': 'هل لديك حساب بالفعل؟ سجّل الدخول',
  'register.offer': 'أليس لديك حساب بعد؟ أنشئ حسابًا',
  'register.sent': 'أرسلنا رسالة إلكترونية إلى {email}. يُرجى فتح رابطها للمتابعة.',
  'register.sent.hint':
    'ألم تصلك الرسالة بعد دقيقة؟ يُرجى التحقق من مجلد الرسائل غير المرغوب فيها ومن العنوان.',
  'register.again': 'استخدام عنوان آخر',
  'register.confirm.title': 'إكمال حسابك',
  'register.confirm.lead': 'عنوانك هو {email}. يُرجى اختيار كلمة مرور لدى {tenant}.',
  'register.confirm.known':
    'لديك حساب بالفعل بالعنوان {email}. انضم إلى {tenant}، ثم سجّل الدخول كالمعتاد.',
  'register.confirm.submit': 'إنشاء حساب',
  'register.confirm.join': 'الانضمام إلى {tenant}',
  'register.off.title': 'التسجيل مغلق',
  'register.off': 'لا يتيح {tenant} التسجيل هنا. يُرجى طلب دعوة من أحد المسؤولين.',
  'register.gone.title': 'لم يعد الرابط صالحًا',
  'register.gone':
    'استُخدم هذا الرابط أو انتهت صلاحيته. يُرجى التسجيل مرة أخرى للحصول على رابط جديد.',
  'register.start': 'التسجيل مرة أخرى',

  'dev_mail.title': 'بريد التطوير',
  'dev_mail.lead':
    'أحدث الرسائل التي أرسلتها هذه الخدمة، محفوظة في الذاكرة. لا توجد هذه الصفحة في بيئة الإنتاج.',
  'dev_mail.none': 'لا توجد رسائل بعد. يُرجى التسجيل أو طلب رمز، ثم إعادة التحميل.',
  'dev_mail.hint':
    'لا ترسل البيئة التجريبية رسائل إلا إلى عناوين مثل you@example.com وإلى النطاقات التي تم التحقق منها وإلى مالكيها.',
  'dev_mail.reload': 'إعادة التحميل',
  'dev_mail.message.title': 'رسالة',
  'dev_mail.subject': 'الموضوع',
  'dev_mail.to': 'إلى',
  'dev_mail.sent': 'وقت الإرسال',
  'dev_mail.open': 'فتح الرابط',
  'dev_mail.text': 'كنص',
  'dev_mail.html': 'بتنسيق HTML',
  'dev_mail.back': 'جميع الرسائل',
}
