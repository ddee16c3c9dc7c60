
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0007_drop_method_of_idempotency_records'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='session',
            name='parent_session',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='sessions_app.session', verbose_name='parent session'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('parent_session__isnull', False)), fields=['parent_session'], name='session_by_parent'),
        ),
    ]
